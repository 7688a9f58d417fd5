"""A cluster of Postgres with Patroni and etcd, as in deploy/."""
