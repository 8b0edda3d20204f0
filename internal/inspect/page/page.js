// Draws picture.json. Everything that others named comes in as text: no markup is ever made of strings.
"use strict";

const $ = (id) => document.getElementById(id);

// h makes an element; attributes that are null or false are left out.
function h(name, attributes, ...children) {
	const e = document.createElement(name);
	for (const [key, value] of Object.entries(attributes || {})) {
		if (value !== null && value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
	}
	e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== ""));
	return e;
}

const count = (n, one, many = one + "s") => `${n} ${n === 1 ? one : many}`;
const time = (t) => new Date(t).toLocaleTimeString([], { hour12: false });

function mood(word) {
	if (["ONLINE", "ACTIVE", "Programmed"].includes(word)) return "ok";
	if (["ERROR", "OFFLINE"].includes(word)) return "bad";
	if (["NO_MONITOR", "", undefined].includes(word)) return "";
	return "warn";
}
const state = (word, how = mood(word)) => (word ? h("span", { class: "state " + how }, word) : null);

// An object that Octavia has accepted says only how it does.
const states = (o) => [o.provisioningStatus && o.provisioningStatus !== "ACTIVE" ? state(o.provisioningStatus) : null, state(o.operatingStatus)];

const sick = (m) => !["ONLINE", "NO_MONITOR", "", undefined].includes(m.operatingStatus);
const members = (g) => (g.pools || []).flatMap((p) => p.members || []);
const troubled = (g) => g.status !== "Programmed" || g.unseen || g.kept || (g.conflicts || []).length || (g.refused || []).length || (g.foreign || []).length ||
	members(g).some(sick) || (g.pools || []).some((p) => !(p.members || []).length);

let picture = null;
let shown = "";

// opened keeps what the reader opened over a refresh.
const opened = new Set();
function details(id, cls, summary, ...body) {
	const d = h("details", { id, class: cls, open: opened.has(id) }, h("summary", { id: id + "-s" }, summary), body);
	d.addEventListener("toggle", () => { d.open ? opened.add(id) : opened.delete(id); wire(); });
	return d;
}

function origin(p) {
	const o = p.origin || {};
	if (o.route) return [h("span", { class: "from" }, o.route), h("span", { class: "quiet" }, ` rule ${o.rule || 0} match ${o.match || 0}`)];
	if (o.listener) return [h("span", { class: "from" }, "end of listener " + o.listener)];
	return [h("span", { class: "from" }, "policy " + p.key)];
}

const poolOf = (p) => (p.action === "REDIRECT_TO_POOL" ? p.target.replace(/^pool /, "") : null);

function policy(g, l, p, i) {
	const id = `${g.gateway}|${l.key}|${p.key}`;
	const head = [h("span", { class: "n" }, String(i + 1)), h("span", {}, origin(p),
		p.match ? h("code", { class: "match" }, p.match) : null,
		h("span", { class: "to" }, p.target, " ", p.provisioningStatus && p.provisioningStatus !== "ACTIVE" ? state(p.provisioningStatus) : null),
		p.notRendered ? h("span", { class: "off" }, "not in effect: " + p.notRendered) : null)];
	const d = details(id, "policy", head, h("ul", {}, (p.rules || []).map((r) => h("li", {}, h("code", {}, r)))));
	const pool = poolOf(p);
	if (pool) d.dataset.pool = pool;
	return h("li", {}, d);
}

function listener(g, l) {
	const other = h("div", { class: "otherwise quiet" }, h("span", {}, "–"), h("span", {}, "otherwise → " + (l.defaultPool ? "pool " + l.defaultPool : "503")));
	if (l.defaultPool) other.dataset.pool = l.defaultPool;
	return h("section", { class: "box" },
		h("div", { class: "head" }, h("h3", {}, `${l.protocol === "TERMINATED_HTTPS" ? "HTTPS" : l.protocol} :${l.port}`), states(l)),
		h("p", { class: "quiet" }, (l.gatewayListeners || []).join(", ")),
		(l.certificates || []).map((c, i) => h("p", { class: "quiet" }, `certificate ${c}${i ? "" : ", the default"}`)),
		h("ol", { class: "policies" }, (l.policies || []).map((p, i) => policy(g, l, p, i))), other);
}

function behind(m) {
	if (m.node) return "Node " + m.node + ((m.pods || []).length ? ` · ${m.pods.join(", ")}` : " · no ready Pod");
	return m.pod ? "Pod " + m.pod : "";
}

function member(m, total) {
	const share = total ? `${Math.round((100 * m.weight) / total)} %` : "0 %";
	return h("li", {}, h("span", {}, h("code", {}, m.address), h("span", { class: "share quiet" }, ` ${share}`)),
		h("span", { class: "behind", title: behind(m) }, behind(m)), h("span", {}, m.disabled ? state("disabled", "warn") : null, state(m.operatingStatus)));
}

// Of a long list the first ones are shown, the sick before the well.
const most = 8;
function pool(g, p) {
	const all = [...(p.members || [])].sort((a, b) => sick(b) - sick(a));
	const total = all.reduce((n, m) => n + m.weight, 0);
	const rest = all.slice(all.length > most + 1 ? most : all.length);
	const list = all.slice(0, all.length - rest.length).map((m) => member(m, total));
	if (rest.length) list.push(h("li", { class: "rest" }, details(`${g.gateway}|${p.key}|rest`, "more", `${rest.length} more`, h("ul", {}, rest.map((m) => member(m, total))))));
	const b = h("section", { class: "box" },
		h("div", { class: "head" }, h("h3", {}, p.key), states(p)),
		p.monitor ? h("p", { class: "quiet" }, "checked by " + p.monitor) : null,
		all.length ? h("ul", { class: "members" }, list) : h("p", { class: "note" }, "No members: its requests are answered with 503."));
	b.dataset.target = p.key;
	return b;
}

// Pools stand in the order in which the policies name them, so that few lines cross.
function pools(g) {
	const order = new Map();
	for (const l of g.listeners || []) {
		for (const key of [...(l.policies || []).map(poolOf), l.defaultPool]) if (key && !order.has(key)) order.set(key, order.size);
	}
	const at = (p) => (order.has(p.key) ? order.get(p.key) : order.size);
	return [...(g.pools || [])].sort((a, b) => at(a) - at(b));
}

const calls = (list) => h("ol", { class: "calls" }, list.map((c) => h("li", { class: c.verb }, h("code", {}, c.text))));

function gateway(g) {
	const b = g.loadBalancer;
	const at = (g.addresses || []).length ? g.addresses.join(", ") : b && (b.floatingIP || b.vip);
	const note = (text, cls = "") => h("p", { class: "note " + cls }, text);
	return h("section", { class: "gateway", id: "gateway-" + g.gateway, tabindex: "-1", "aria-label": "Gateway " + g.gateway },
		h("div", { class: "head" }, h("h2", {}, g.gateway), state(g.status),
			h("span", {}, at ? h("code", {}, at) : ""), h("span", { class: "quiet far" }, "class " + g.class)),
		b ? h("p", { class: "quiet" }, `load balancer ${b.name}`, b.vip ? `, VIP ${b.vip}` : "", b.floatingIP ? `, floating IP ${b.floatingIP}` : "", " ", states(b),
			g.wanted ? " as wanted, not as in the cloud" : "") : null,
		g.status !== "Programmed" && g.message ? note(g.message) : null,
		g.kept ? note("What it has stays as it is: " + g.kept) : null,
		g.unseen ? note("Not seen: " + g.unseen) : null,
		(g.conflicts || []).map((c) => note(`${c.kind} ${c.key}: ${c.reason}`, "bad")),
		(g.foreign || []).map((f) => note(`${f.kind} ${f.id} ${f.name || ""} is not ours`, "bad")),
		(g.refused || []).map((r) => note(r)),
		(g.pending || []).length ? h("div", { class: "pending" }, h("h3", {}, `Pending: ${count(g.pending.length, "call")}, ${g.pending.filter((c) => c.locks).length} of them with the load balancer's lock`), calls(g.pending)) : null,
		(g.listeners || []).length ? h("div", { class: "map" },
			h("div", { class: "column" }, g.listeners.map((l) => listener(g, l))),
			h("div", { class: "column" }, pools(g).map((p) => pool(g, p)))) : null);
}

function planned(p) {
	return h("li", {}, h("p", {}, h("strong", {}, p.gateway), ` ${time(p.seen)} `, p.over ? h("span", { class: "quiet" }, "over at " + time(p.over)) : state("pending", "warn")), calls(p.calls));
}

// A Gateway is shown with everything that belongs to it when any of its words has the text.
function wanted(g) {
	const text = $("filter").value.trim().toLowerCase();
	return (!text || JSON.stringify(g).toLowerCase().includes(text)) && (!$("troubled").checked || troubled(g));
}

function draw() {
	if (!picture) return;
	const focus = document.activeElement && document.activeElement.id;
	const list = picture.gateways.filter(wanted);
	const none = picture.gateways.length ? "No Gateway is like that." : `No Gateway of ${picture.controller}.`;
	$("gateways").replaceChildren(...(list.length ? list.map(gateway) : [h("p", { class: "none quiet" }, none)]));
	$("history").replaceChildren(...picture.plans.map(planned));
	$("plans").hidden = !picture.plans.length;
	const all = picture.gateways.flatMap(members);
	const ill = all.filter(sick).length;
	const bad = picture.gateways.filter(troubled).length;
	const pending = picture.gateways.reduce((n, g) => n + (g.pending || []).length, 0);
	$("sum").replaceChildren(state(count(picture.gateways.length, "Gateway"), bad ? "" : "ok"), bad ? state(bad + " with trouble", "warn") : "",
		state(count(all.length - ill, "member") + " up", "ok"), ill ? state(ill + " down", "bad") : "", state(count(pending, "call") + " pending", pending ? "warn" : ""));
	wire();
	if (focus && $(focus)) $(focus).focus({ preventScroll: true });
}

// wire draws the lines from policies to pools.
const svg = "http://www.w3.org/2000/svg";
function wire() {
	for (const map of document.querySelectorAll(".map")) {
		const old = map.querySelector(".wires");
		if (old) old.remove();
		const drawing = document.createElementNS(svg, "svg");
		drawing.setAttribute("class", "wires");
		drawing.setAttribute("aria-hidden", "true");
		const base = map.getBoundingClientRect();
		const targets = new Map([...map.querySelectorAll("[data-target]")].map((t) => [t.dataset.target, t]));
		for (const from of map.querySelectorAll("[data-pool]")) {
			const to = targets.get(from.dataset.pool);
			if (!to) continue;
			const a = (from.querySelector("summary") || from).getBoundingClientRect(), b = to.getBoundingClientRect(), edge = from.closest(".box").getBoundingClientRect();
			const x = edge.right - base.left, y = a.top + a.height / 2 - base.top, u = b.left - base.left, v = b.top + 20 - base.top, m = (x + u) / 2;
			const path = document.createElementNS(svg, "path");
			path.setAttribute("d", `M${x} ${y} C${m} ${y} ${m} ${v} ${u} ${v}`);
			path.dataset.pool = from.dataset.pool;
			path.dataset.from = from.id;
			drawing.append(path);
		}
		map.append(drawing);
	}
}

// light shows which policies and pools belong together, for the pointer and for the keyboard.
function light(event) {
	for (const e of document.querySelectorAll(".lit")) e.classList.remove("lit");
	const hit = event.target.closest && event.target.closest("[data-pool], [data-target]");
	if (!hit || event.type === "pointerout" || event.type === "focusout") return;
	const map = hit.closest(".map"), key = hit.dataset.pool || hit.dataset.target;
	hit.classList.add("lit");
	for (const e of map.querySelectorAll("[data-target]")) if (e.dataset.target === key) e.classList.add("lit");
	for (const e of map.querySelectorAll(".wires path")) {
		if (e.dataset.pool === key && (hit.dataset.target || e.dataset.from === hit.id)) e.classList.add("lit");
	}
	if (hit.dataset.target) for (const e of map.querySelectorAll(".policy[data-pool]")) if (e.dataset.pool === key) e.classList.add("lit");
}

function fail(text) {
	$("failed").hidden = !text;
	if ($("failed").textContent !== text) $("failed").textContent = text;
}

async function refresh() {
	try {
		const answer = await fetch("picture.json", { cache: "no-store" });
		const text = await answer.text();
		if (!answer.ok) throw new Error(text);
		picture = JSON.parse(text);
		fail(picture.failed ? `What you see is of ${time(picture.taken)}: ${picture.failed}` : "");
		$("about").textContent = `${picture.cluster ? picture.cluster + ", " : ""}as of ${time(picture.taken)}`;
		const { taken, ...rest } = picture;
		const now = JSON.stringify(rest);
		if (now !== shown) draw();
		shown = now;
	} catch (e) {
		fail(e instanceof TypeError ? "kubectl octavia ui does not answer: was it ended? What you see is old." : e.message);
	}
}

// Nobody asks the cloud for a page that nobody sees.
async function watch() {
	if (document.visibilityState === "visible") await refresh();
	setTimeout(watch, 5000);
}

$("tools").addEventListener("submit", (e) => e.preventDefault());
$("filter").addEventListener("input", draw);
$("troubled").addEventListener("change", draw);
for (const type of ["pointerover", "pointerout", "focusin", "focusout"]) document.addEventListener(type, light);
new ResizeObserver(wire).observe($("gateways"));
document.addEventListener("keydown", (e) => {
	if (e.ctrlKey || e.metaKey || e.altKey) return;
	if (e.target.matches("input[type=search]")) {
		if (e.key === "Escape") { $("filter").value = ""; draw(); }
		return;
	}
	if (e.key === "/") { e.preventDefault(); $("filter").focus(); }
	if (e.key !== "j" && e.key !== "k") return;
	const all = [...document.querySelectorAll(".gateway")];
	const at = all.indexOf(document.activeElement.closest(".gateway"));
	const next = e.key === "j" ? all[at + 1] : all[Math.max(at - 1, 0)];
	if (next) { next.focus(); next.scrollIntoView({ block: "start" }); }
});
watch();
