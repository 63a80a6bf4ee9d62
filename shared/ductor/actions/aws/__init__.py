"""Actions that call AWS services. Loads the vendor's library with the first call, never before."""
