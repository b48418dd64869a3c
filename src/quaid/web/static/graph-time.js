// The time slider of the graph: a day, Play, and a curve of the number of links. Days are numbers, counted as in the
// data: 719163 is 1970-01-01, and 0 is an unknown day.

const EPOCH = 719163;
const MS = 86_400_000;
const FRAMES = 150; // Play takes at most this many steps

export const todayNumber = () => Math.floor(Date.now() / MS) + EPOCH;
export const isoDay = (number) => new Date((number - EPOCH) * MS).toISOString().slice(0, 10);
export const inWords = (number) => new Date((number - EPOCH) * MS).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });

export class TimeSlider {
  constructor(box, begins, ends, onDay) {
    this.slider = box.querySelector("[data-when]");
    this.output = box.querySelector("[data-day]");
    this.player = box.querySelector("[data-play]");
    this.onDay = onDay;
    this.playing = 0;
    this.today = todayNumber();
    const known = new Set();
    for (const list of [begins, ends]) for (const day of list) if (day) known.add(day);
    const days = [...known].sort((a, b) => a - b);
    this.first = Math.min(this.today, days[0] ?? this.today) - 7;
    this.changes = days.map((day) => day - this.first);
    this.slider.min = 0;
    this.slider.max = Math.max(this.today, days.at(-1) ?? 0) - this.first;
    this.slider.disabled = this.player.disabled = !days.length;
    this.curve(box, begins, ends);
    this.slider.addEventListener("input", () => {
      this.play(false);
      this.show(this.slider.valueAsNumber);
    });
    this.slider.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!way || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.play(false);
      this.step(way);
    });
    this.player.addEventListener("click", () => this.play(!this.playing));
    const asked = Date.parse(box.dataset.on);
    this.show((Number.isNaN(asked) ? this.today : asked / MS + EPOCH) - this.first);
  }

  get day() {
    return this.first + this.slider.valueAsNumber;
  }

  show(place) {
    this.slider.value = place;
    const words = this.day === this.today ? `today, ${inWords(this.day)}` : inWords(this.day);
    this.output.textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
    this.onDay(this.day, this.day === this.today, Boolean(this.playing));
  }

  /** Show the next or the previous day on which a link begins or ends. */
  step(way, times = 1) {
    const now = this.slider.valueAsNumber;
    const later = this.changes.findIndex((each) => each > now);
    const at = way > 0 ? (later < 0 ? this.changes.length : later) + times - 1 : this.changes.findLastIndex((each) => each < now);
    this.show(this.changes[at] ?? (way > 0 ? Number(this.slider.max) : 0));
  }

  play(isPlaying) {
    clearInterval(this.playing);
    this.playing = 0;
    this.player.textContent = isPlaying ? "Pause" : "Play";
    this.player.setAttribute("aria-pressed", String(isPlaying));
    if (!isPlaying) return;
    const end = this.today - this.first;
    if (this.slider.valueAsNumber >= end) this.show(0);
    const times = Math.ceil(this.changes.length / FRAMES);
    this.playing = setInterval(() => {
      this.step(1, times);
      if (this.slider.valueAsNumber < Math.max(end, this.changes.at(-1) ?? 0)) return;
      this.play(false);
    }, Math.min(Math.max(9000 / (this.changes.length + 1), 60), 700));
  }

  /** Draw the number of links over time, above the slider. */
  curve(box, begins, ends) {
    const last = Number(this.slider.max);
    const differences = new Map();
    const add = (place, sign) => differences.set(place, (differences.get(place) ?? 0) + sign);
    begins.forEach((day) => add(day ? day - this.first : 0, 1));
    ends.forEach((day) => day && add(day - this.first, -1));
    let sum = 0;
    const counts = [...new Set([0, ...this.changes])].map((place) => [place, (sum += differences.get(place) ?? 0)]);
    const most = counts.reduce((all, [, count]) => Math.max(all, count), 1);
    const height = (count) => (23 - (22 * count) / most).toFixed(2);
    const points = counts.flatMap(([place, count], i) => {
      const at = ((place / last) * 100).toFixed(2);
      return [`${at} ${i ? height(counts[i - 1][1]) : 24}`, `${at} ${height(count)}`];
    });
    box.querySelector("[data-growth] path").setAttribute("d", `M0 24 L${points.join(" L")} L100 ${height(counts.at(-1)[1])} L100 24 Z`);
  }
}
