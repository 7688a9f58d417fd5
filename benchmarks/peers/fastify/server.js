// Fastify with pg: COUNT, LIMIT and OFFSET, and a response schema, which Fastify compiles to a serialiser.
import Fastify from 'fastify'
import pg from 'pg'

const PAGE_SIZE = 50
const pool = new pg.Pool() // PGHOST and similar variables give the address
const app = Fastify()

const schema = {
  querystring: { type: 'object', properties: { page: { type: 'integer', minimum: 1, default: 1 } } },
  response: {
    200: {
      type: 'object',
      properties: {
        quantity: { type: 'integer' },
        total_pages: { type: 'integer' },
        results: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              id: { type: 'integer' },
              municipio_id: { type: 'integer' },
              clave: { type: 'string' },
              nombre: { type: 'string' }
            }
          }
        }
      }
    }
  }
}

app.get('/api/census/localidades/', { schema }, async (request) => {
  const counted = await pool.query('SELECT count(*) FROM localities')
  const quantity = Number(counted.rows[0].count)
  const { rows } = await pool.query(
    'SELECT id, municipio_id, clave, nombre FROM localities ORDER BY clave, id LIMIT $1 OFFSET $2',
    [PAGE_SIZE, (request.query.page - 1) * PAGE_SIZE]
  )
  return { quantity, total_pages: Math.ceil(quantity / PAGE_SIZE), results: rows }
})

await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
