"""The commands of `rectom`, a file each; each is imported when it is called."""
