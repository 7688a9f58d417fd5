"""The command `match`: what is read and written (`job`), how rows are answered, here or by a service (`run`)."""
