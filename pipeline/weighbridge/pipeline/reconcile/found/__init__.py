"""What was found: findings about gaps and records, their evidence and their life."""
