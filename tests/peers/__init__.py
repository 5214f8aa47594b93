"""Public functions held against other code: which, against whose, on what data."""
