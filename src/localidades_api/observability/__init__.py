"""What the service reports about itself: metrics, logs, traces, progress."""
