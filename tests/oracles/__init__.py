"""What every public number is held against: a computation that shares no code with this package, on the same input."""
