"""What a person starts: the command line, and the pipeline as a Prefect flow or without Prefect."""
