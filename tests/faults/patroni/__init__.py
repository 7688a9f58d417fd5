"""A cluster of Postgres with Patroni and etcd, as docs/operations/deploy.md sets it up."""
