"""The exact program over occupancy measures: by general engines, and by generated policies."""
