"""Other methods than RecToM: each a small program that answers a question with the help of a model."""
