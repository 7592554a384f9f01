"""The grammars of benchmarks with a controlled text: lines and questions, read by rule."""
