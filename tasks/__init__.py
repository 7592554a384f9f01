"""The stages of the pipeline, a file each: plain async functions over a shard of stories.

They know no Prefect. `flows` makes Prefect tasks of them, or runs them as they are.
"""
