// A map of the places of a list: points on a canvas, north up, on the web's usual projection (Mercator).

const toRadians = Math.PI / 180;
const north = (latitude) => Math.log(Math.tan(Math.PI / 4 + (latitude * toRadians) / 2)) / toRadians;

class PointMap {
  constructor(canvas, places, detail) {
    this.canvas = canvas;
    this.detail = detail;
    this.places = places.map(({ id, geometry, properties }) => ({
      id, name: properties.nombre, x: geometry.coordinates[0], y: -north(geometry.coordinates[1]),
    }));
    const xs = this.places.map((place) => place.x);
    const ys = this.places.map((place) => place.y);
    const span = (values) => values.reduce(([low, high], one) => [Math.min(low, one), Math.max(high, one)],
                                           [Infinity, -Infinity]);
    const [[west, east], [top, bottom]] = [span(xs), span(ys)];
    this.scale = Math.min(canvas.width / (east - west || 0.02), canvas.height / (bottom - top || 0.02)) * 0.92;
    this.smallest = this.scale / 4;
    this.centre = { x: (west + east) / 2, y: (top + bottom) / 2 };
    this.over = null;
    this.listen();
    this.paint();
  }

  toCanvas(place) {
    return [(place.x - this.centre.x) * this.scale + this.canvas.width / 2,
            (place.y - this.centre.y) * this.scale + this.canvas.height / 2];
  }

  paint() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      const pen = this.canvas.getContext("2d");
      const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
      pen.fillStyle = colour("--shade");
      pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
      pen.fillStyle = colour("--link");
      const size = this.places.length > 5000 ? 2 : this.places.length > 500 ? 3 : 6;
      for (const place of this.places) {
        const [x, y] = this.toCanvas(place);
        if (x > -size && y > -size && x < this.canvas.width && y < this.canvas.height) {
          pen.fillRect(x - size / 2, y - size / 2, size, size);
        }
      }
      if (this.over) this.label(pen, this.over, colour);
    });
  }

  label(pen, place, colour) {
    const [x, y] = this.toCanvas(place);
    pen.font = "600 16px system-ui, sans-serif";
    const width = pen.measureText(place.name).width + 16;
    const left = Math.min(Math.max(x - width / 2, 4), this.canvas.width - width - 4);
    const top = y > 40 ? y - 38 : y + 12;
    pen.fillStyle = colour("--ink");
    pen.beginPath();
    pen.arc(x, y, 6, 0, 2 * Math.PI);
    pen.fill();
    pen.fillRect(left, top, width, 26);
    pen.fillStyle = colour("--paper");
    pen.fillText(place.name, left + 8, top + 18);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * this.canvas.width) / box.width,
            ((event.clientY - box.top) * this.canvas.height) / box.height];
  }

  nearest(event) {
    const [x, y] = this.at(event);
    let [best, found] = [144, null];
    for (const place of this.places) {
      const [px, py] = this.toCanvas(place);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < best) [best, found] = [distance, place];
    }
    return found;
  }

  zoom(factor, [x, y] = [this.canvas.width / 2, this.canvas.height / 2]) {
    const scale = Math.min(Math.max(this.scale * factor, this.smallest), 1e6);
    this.centre.x += (x - this.canvas.width / 2) * (1 / this.scale - 1 / scale);
    this.centre.y += (y - this.canvas.height / 2) * (1 / this.scale - 1 / scale);
    this.scale = scale;
    this.paint();
  }

  move(x, y) {
    this.centre.x -= x / this.scale;
    this.centre.y -= y / this.scale;
    this.paint();
  }

  listen() {
    const canvas = this.canvas;
    let from = null;
    let moved = false;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), this.at(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      [from, moved] = [this.at(event), false];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (from) {
        const to = this.at(event);
        moved ||= Math.hypot(to[0] - from[0], to[1] - from[1]) > 4;
        if (moved) {
          this.move(to[0] - from[0], to[1] - from[1]);
          from = to;
        }
        return;
      }
      const over = this.nearest(event);
      canvas.style.cursor = over ? "pointer" : "grab";
      if (over !== this.over) {
        this.over = over;
        this.paint();
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      const place = moved ? null : this.nearest(event);
      from = null;
      if (place) location.href = `${place.id}/?${this.detail}`;
    });
    canvas.addEventListener("keydown", (event) => {
      const known = {
        "+": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), ArrowLeft: () => this.move(60, 0),
        ArrowRight: () => this.move(-60, 0), ArrowUp: () => this.move(0, 60), ArrowDown: () => this.move(0, -60),
      }[event.key];
      if (known) {
        event.preventDefault();
        known();
      }
    });
    document.addEventListener("themechange", () => this.paint());
  }
}

export function draw(section) {
  const [button, canvas, status] = [".show", "canvas", ".status"].map((one) => section.querySelector(one));
  section.hidden = false;
  if (Number(section.dataset.quantity) > Number(section.dataset.most)) {
    status.textContent = status.dataset.many;
    button.hidden = true;
    return;
  }
  button.addEventListener("click", async () => {
    button.disabled = true;
    status.textContent = status.dataset.loading;
    try {
      const answer = await fetch(section.dataset.source);
      if (!answer.ok) throw new Error(String(answer.status));
      const places = (await answer.json()).features.filter((feature) => feature.geometry);
      canvas.hidden = false;
      button.hidden = true;
      new PointMap(canvas, places, section.dataset.detail);
      canvas.focus({ preventScroll: true });
      status.textContent = `${places.length.toLocaleString("en")} ${status.dataset.shown}`;
    } catch {
      button.disabled = false;
      status.textContent = status.dataset.failed;
    }
  });
}
