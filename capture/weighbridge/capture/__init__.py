"""The capture agent: what runs inside the serving process. It needs pyarrow and nothing else."""
