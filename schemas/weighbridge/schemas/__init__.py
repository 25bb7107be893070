"""The vocabulary: tables, token classes, findings, keys and raw leaves. It needs pyarrow and nothing else of ours."""
