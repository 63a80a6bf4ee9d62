"""What the Lambda functions do with their batches: which records succeeded, which come again and when."""
