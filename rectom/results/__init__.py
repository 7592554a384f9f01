"""What a run leaves behind: its folder, the counts and intervals, tables, and pages."""
