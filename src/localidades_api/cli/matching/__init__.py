"""The command `match`: its options (`job`), and the matching of rows, here or by a service (`run`)."""
