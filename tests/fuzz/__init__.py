"""Coverage-guided fuzzing of what reads other people's bytes, with Atheris (`make fuzz`)."""
