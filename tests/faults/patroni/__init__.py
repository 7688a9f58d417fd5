"""A cluster of Postgres that fails over by itself: Patroni and etcd, as deploy/ has them."""
