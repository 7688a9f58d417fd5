"""What the service tells of itself: metrics, log, traces, progress."""
