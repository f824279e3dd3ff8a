// The numbers under the pointer. They are read from the table behind the chart, which is all there is without a script.
for (const chart of document.querySelectorAll(".chart")) {
  const svg = chart.querySelector(".plot svg"), tip = chart.querySelector(".tip"), guide = svg.querySelector(".guide");
  const numbers = chart.querySelector(".scroll"), places = numbers.dataset.x.split(" ").map(Number);
  const names = [...numbers.querySelectorAll("thead th")].map(cell => cell.textContent);
  const rows = numbers.querySelectorAll("tbody tr");
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    const x = (event.clientX - box.left) / scale;
    let nearest = 0;
    places.forEach((place, index) => { if (Math.abs(place - x) < Math.abs(places[nearest] - x)) nearest = index; });
    tip.textContent = [...rows[nearest].cells].map((cell, index) => `${names[index]} ${cell.textContent}`).join("\n");
    const left = places[nearest] * scale;
    tip.style.left = `${left + (left > box.width / 2 ? -8 - tip.offsetWidth : 8)}px`;
    guide.setAttribute("x1", places[nearest]);
    guide.setAttribute("x2", places[nearest]);
    chart.classList.add("pointed");
  });
  svg.addEventListener("pointerleave", () => chart.classList.remove("pointed"));
}
