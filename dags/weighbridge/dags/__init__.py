"""The schedule: flows that call `weighbridge.pipeline.run`. The only room that may import Prefect."""
