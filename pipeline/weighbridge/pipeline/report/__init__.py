"""The report: one self-contained page, one workbook and CSV tables, all drawn from the lake and nothing else."""
