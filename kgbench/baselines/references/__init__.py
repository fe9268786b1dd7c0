"""What every operator must compute, in float64, complex128 or exact integers; one module per source."""
