"""What action steps run: registered Python functions, and the rules at their border. Knows no run and no storage."""
