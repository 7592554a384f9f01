"""The readers, which answer the paper's semantic questions: by rule, or by asking a model."""
