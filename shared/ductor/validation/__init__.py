"""Checks definition documents and names every fault at once. Runs nothing and stores nothing."""
