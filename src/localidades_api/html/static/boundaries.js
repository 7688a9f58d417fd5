// Approximate boundaries of municipios, as far as places tell: where one of each municipio is equally near.
import "./delaunator/delaunator.min.js"; // it makes itself a global

const REACH = 8000; // metres from the nearest places up to which there is a boundary: beyond, they tell too little

// Returns the boundaries between places, which are features of tiles, and a point in the middle of each municipio's.
export function outline(places, { MercatorCoordinate }) {
  const known = [...new Map(places.map((place) => [place.id, place])).values()]; // tiles may come twice
  const points = known.map(({ geometry }) => MercatorCoordinate.fromLngLat(geometry.coordinates));
  const municipios = known.map(({ properties }) => properties.municipio_id);
  /** @type {Record<string, any[]>} */
  const lines = { municipio: [], estado: [] };
  for (const [one, other, from, to] of edges(points, municipios)) {
    const reached = within(points[one], from, to);
    const isOfEstados = Math.floor(municipios[one] / 1000) !== Math.floor(municipios[other] / 1000);
    if (reached) lines[isOfEstados ? "estado" : "municipio"].push(reached);
  }
  const degrees = ([x, y]) => new MercatorCoordinate(x, y).toLngLat().toArray();
  const feature = (type, coordinates, properties) => ({ type: "Feature", properties, geometry: { type, coordinates } });
  return [
    ...Object.entries(lines).map(([of, found]) => (
      feature("MultiLineString", found.map((line) => line.map(degrees)), { of })
    )),
    ...middles(points, municipios).map(([municipio_id, point]) => feature("Point", degrees(point), { municipio_id })),
  ];
}

// The edges of the Voronoi diagram between different municipios that end on both sides: the points that one lies between,
// and its ends.
function* edges(points, municipios) {
  const { triangles, halfedges } = globalThis.Delaunator.from(points, ({ x }) => x, ({ y }) => y);
  const next = (edge) => (edge % 3 === 2 ? edge - 2 : edge + 1);
  const middle = (edge) => circumcentre(...[edge, next(edge), next(next(edge))].map((one) => points[triangles[one]]));
  for (let edge = 0; edge < halfedges.length; edge += 1) {
    const [one, other, opposite] = [triangles[edge], triangles[next(edge)], halfedges[edge]];
    const isFirst = edge < opposite; // an edge at the rim has no opposite
    if (isFirst && municipios[one] !== municipios[other]) yield [one, other, middle(edge), middle(opposite)];
  }
}

function circumcentre(a, b, c) {
  const [bx, by, cx, cy] = [b.x - a.x, b.y - a.y, c.x - a.x, c.y - a.y];
  const [bb, cc, twice] = [bx * bx + by * by, cx * cx + cy * cy, 2 * (bx * cy - by * cx)];
  return [a.x + (cy * bb - by * cc) / twice, a.y + (bx * cc - cx * bb) / twice];
}

// A line if both its ends are in reach of a point; otherwise the part of it that is half as near, null if none is.
function within(point, [x, y], [endX, endY]) {
  const reach = REACH * point.meterInMercatorCoordinateUnits();
  const far = Math.max(Math.hypot(x - point.x, y - point.y), Math.hypot(endX - point.x, endY - point.y));
  const radius = far > reach ? reach / 2 : reach;
  const [dx, dy, fromX, fromY] = [endX - x, endY - y, x - point.x, y - point.y];
  const [squared, half] = [dx * dx + dy * dy, dx * fromX + dy * fromY];
  const root = Math.sqrt(half * half - squared * (fromX * fromX + fromY * fromY - radius * radius));
  const [start, end] = [Math.max(0, (-half - root) / squared), Math.min(1, (-half + root) / squared)];
  return start < end ? [[x + start * dx, y + start * dy], [x + end * dx, y + end * dy]] : null;
}

function middles(points, municipios) {
  const sums = new Map();
  points.forEach(({ x, y }, index) => {
    const sum = sums.get(municipios[index]) ?? [0, 0, 0];
    sums.set(municipios[index], [sum[0] + x, sum[1] + y, sum[2] + 1]);
  });
  return [...sums].map(([municipio, [x, y, count]]) => [municipio, [x / count, y / count]]);
}
