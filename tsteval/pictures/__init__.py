"""Pictures of what systems do: transport plans, trade-offs, the steps of a metric, galleries of telling rows."""
