// Every struct that travels or is stored, as (key, member) lists. Keys are never given another
// meaning; new ones are optional. Private to this folder. Enumerations are checked by check() in
// codec.cpp after reading.
#pragma once

#include "shared/protocol/messages.h"
#include "shared/protocol/wire.h"

// The functions are found by argument-dependent lookup, so each stands in the namespace of its
// struct.
namespace layerfarm::domain {

template <typename V>
void describe(V& v, TensorType& t) {
  v.required("t", t.dtype);
  v.optional("d", t.dims);
}
template <typename V>
void describe(V& v, Tolerance& t) {
  v.required("avg", t.fp_avg_tol);
  v.required("max", t.fp_max_tol);
  v.optional("frac", t.fp_abs_tol_frac);
  v.optional("int", t.int_tol);
}
template <typename V>
void describe(V& v, Limits& l) {
  v.optional("compile_timeout_ms", l.compile_timeout_ms);
  v.optional("run_timeout_ms", l.run_timeout_ms);
  v.optional("memory_bytes", l.memory_bytes);
  v.optional("output_bytes", l.output_bytes);
  v.optional("file_bytes", l.file_bytes);
}
template <typename V>
void describe(V& v, ExecutorSpec& e) {
  v.required("name", e.name);
  v.required("tolerance", e.tolerance);
  v.optional("evidence", e.evidence);
  v.optional("same_engine", e.same_engine);
  v.optional("options", e.options);
}
template <typename V>
void describe(V& v, ChipSpec& c) {
  v.required("name", c.name);
  v.optional("target", c.target);
  v.optional("toolchain", c.toolchain);
  v.optional("hw_type", c.hw_type);
  v.optional("executors", c.executors);
  v.optional("options", c.options);
  v.optional("limits", c.limits);
  v.optional("notes", c.notes);
}
template <typename V>
void describe(V& v, Comparison& c) {
  v.required("t", c.dtype);
  v.required("n", c.total);
  v.optional("failure", c.failure);
  v.optional("max_abs", c.max_abs);
  v.optional("max_rel", c.max_rel);
  v.optional("max_expected", c.max_expected);
  v.optional("mean_abs", c.mean_abs);
  v.optional("mean_rel", c.mean_rel);
  v.required("cosine", c.cosine);
  v.optional("worst", c.worst_index);
  v.optional("worst_expected", c.worst_expected);
  v.optional("worst_actual", c.worst_actual);
  v.required("counted_at", c.counted_at);
  v.optional("num_diffs", c.num_diffs);
  v.optional("num_failed", c.num_failed);
  v.optional("num_forgiven", c.num_forgiven);
  v.optional("num_small", c.num_small);
  v.optional("off_by_one", c.num_off_by_one);
  v.optional("required_max_tol", c.required_max_tol);
  v.optional("histogram", c.rel_histogram);
  v.optional("rel_above", c.max_rel_above);
}
template <typename V>
void describe(V& v, InputSpec& i) {
  v.required("type", i.type);
  v.required("lo", i.lo);
  v.required("hi", i.hi);
  v.optional("values", i.values);
}
template <typename V>
void describe(V& v, DataFile& f) {
  v.required("name", f.name);
  v.required("blob", f.blob);
  v.optional("bytes", f.bytes);
}
template <typename V>
void describe(V& v, LayerModule& m) {
  v.required("format", m.format);
  v.required("blob", m.blob);
  v.optional("data", m.data);
}
/// What running a layer takes; the rest of it is for the report.
template <typename V>
void describe_work(V& v, Layer& l) {
  v.required("id", l.id);
  v.optional("op_type", l.op_type);
  v.optional("node_name", l.node_name);
  v.required("signature", l.signature);
  v.required("module", l.module);
  v.optional("wide_module", l.wide_module);
  v.optional("inputs", l.inputs);
  v.optional("input_names", l.input_names);
  v.optional("draw_order", l.draw_order);
  v.optional("outputs", l.outputs);
  v.optional("output_names", l.output_names);
  v.optional("open_outputs", l.open_outputs);
  v.optional("problem", l.problem);
}
template <typename V>
void describe(V& v, Layer& l) {
  describe_work(v, l);
  v.optional("orig_index", l.orig_index);
  v.optional("node_index", l.node_index);
  v.optional("loose_signature", l.loose_signature);
  v.optional("quantized", l.quantized);
  v.optional("quantize_note", l.quantize_note);
  v.optional("mac_count", l.mac_count);
  v.optional("mac_breakdown", l.mac_breakdown);
}
template <typename V>
void describe(V& v, SourceLocation& l) {
  v.required("line", l.line);
  v.required("column", l.column);
  v.optional("op_type", l.op_type);
}
template <typename V>
void describe(V& v, ReadFile& f) {
  v.required("path", f.path);
  v.required("digest", f.digest);
  v.optional("bytes", f.bytes);
}
template <typename V>
void describe(V& v, NodeRange& r) {
  v.required("first", r.first);
  v.required("last", r.last);
}
template <typename V>
void describe(V& v, Segment& s) {
  v.required("executor", s.executor);
  v.optional("operators", s.operators);
  v.optional("nodes", s.nodes);
}
template <typename V>
void describe(V& v, WholeRequest& w) {
  v.required("analysis", w.analysis);
  v.optional("executors", w.executors);
  v.optional("check_boundaries", w.check_boundaries);
}
template <typename V>
void describe(V& v, ModelAnalysis& a) {
  v.required("format", a.format);
  v.required("model_digest", a.model_digest);
  v.optional("files", a.files);
  v.required("layers", a.layers);
  v.optional("segments", a.segments);
  v.optional("operators", a.operators);
  v.optional("locations", a.locations);
  v.optional("location_problem", a.location_problem);
  v.optional("dim_names", a.dim_names);
  v.optional("subgraph", a.subgraph);
  v.optional("skipped", a.skipped);
  v.optional("notes", a.notes);
  v.optional("importer_version", a.importer_version);
}
template <typename V>
void describe(V& v, Conversion& c) {
  v.optional("bf16", c.bf16);
  v.optional("int32", c.int32);
}
template <typename V>
void describe(V& v, Quantization& q) {
  v.required("format", q.format);
  v.optional("per_channel", q.per_channel);
  v.optional("full_integer", q.full_integer);
  v.required("samples", q.samples);
  v.optional("calibration", q.calibration);
  v.optional("calibration_path", q.calibration_path);
}
template <typename V>
void describe(V& v, SubgraphRange& r) {
  v.required("from", r.from);
  v.required("to", r.to);
}
template <typename V>
void describe(V& v, AnalyzeRequest& r) {
  v.required("model_path", r.model_path);
  v.optional("dims", r.dims);
  v.optional("convert", r.convert);
  v.optional("subgraph", r.subgraph);
  v.optional("quantize", r.quantize);
  v.optional("unit", r.unit);
  v.optional("assignment", r.assignment);
}
template <typename V>
void describe(V& v, Diagnostic& d) {
  v.optional("where", d.where);
  v.optional("cause", d.cause);
  v.optional("text", d.text);
  v.optional("raw", d.raw);
}
template <typename V>
void describe(V& v, Prepared& p) {
  v.optional("inputs", p.inputs);
  v.optional("expected", p.expected);
  v.optional("types", p.expected_types);
  v.optional("reference", p.reference);
}
template <typename V>
void describe(V& v, Artifact& a) {
  v.required("blob", a.blob);
  v.optional("data", a.data);
  v.optional("function", a.function);
  v.optional("compile_us", a.compile_us);
  v.required("batch", a.batch);
  v.optional("note", a.note);
}
template <typename V>
void describe(V& v, Executed& e) {
  v.optional("outputs", e.outputs);
  v.optional("expected_outputs", e.expected_outputs);
  v.optional("actual", e.actual);
  v.optional("run_us", e.run_us);
  v.optional("note", e.note);
}
template <typename V>
void describe(V& v, Timed& t) {
  v.optional("runs_us", t.runs_us);
  v.optional("what", t.what);
}
template <typename V>
void describe(V& v, SegmentRun& s) {
  v.required("executor", s.executor);
  v.optional("operators", s.operators);
  v.optional("results", s.results);
  v.optional("boundary", s.boundary);
  v.optional("run_us", s.run_us);
  v.optional("note", s.note);
}
template <typename V>
void describe(V& v, WholeRun& w) {
  v.optional("outputs", w.outputs);
  v.optional("expected_outputs", w.expected_outputs);
  v.optional("segments", w.segments);
  v.optional("bytes_crossed", w.bytes_crossed);
  v.optional("reference", w.reference);
}
template <typename V>
void describe(V& v, Outcome& o) {
  v.required("stage", o.stage);
  v.required("ending", o.ending);
  v.optional("diagnostic", o.diagnostic);
  v.optional("prepared", o.prepared);
  v.optional("artifact", o.artifact);
  v.optional("executed", o.executed);
  v.optional("timed", o.timed);
  v.optional("whole", o.whole);
  v.optional("analysis", o.analysis);
  v.optional("ir_dump", o.ir_dump);
  v.optional("lost", o.lost);
  v.optional("took_us", o.took_us);
  v.optional("tool", o.tool);
}
template <typename V>
void describe(V& v, ToolIdentity& t) {
  v.optional("version", t.version);
  v.optional("files", t.files);
  v.optional("cpu", t.cpu);
}
template <typename V>
void describe(V& v, InputSet& i) {
  v.required("seed", i.seed);
  v.optional("folder", i.folder);
  v.optional("path", i.path);
}

}  // namespace layerfarm::domain

namespace layerfarm::protocol {

template <typename V>
void describe(V& v, Ability& a) {
  v.required("toolchain", a.toolchain);
  v.required("chip", a.chip);
  v.optional("found", a.found);
  v.optional("identity", a.identity);
  v.optional("missing", a.missing);
  v.optional("how_to_get", a.how_to_get);
  v.required("needs_prepare", a.needs_prepare);
  v.required("needs_compile", a.needs_compile);
  v.required("batch", a.batch);
  v.optional("takes_map", a.takes_map);
}
template <typename V>
void describe(V& v, Hello& h) {
  v.required("min", h.min_version);
  v.required("max", h.max_version);
  v.optional("software", h.software);
  v.optional("features", h.features);
  v.optional("name", h.name);
  v.optional("host", h.host);
  v.optional("pid", h.pid);
  v.optional("cores", h.cores);
  v.optional("cpu_model", h.cpu_model);
  v.optional("abilities", h.abilities);
  v.optional("running", h.running);
}
template <typename V>
void describe(V& v, Heartbeat& h) {
  v.optional("attempt", h.attempt);
  v.optional("phase", h.phase);
  v.optional("phase_ms", h.phase_ms);
  v.optional("waits_for", h.waits_for);
}
template <typename V>
void describe(V& v, Started& s) {
  v.required("attempts", s.attempts);
}
template <typename V>
void describe(V& v, AttemptOutcome& a) {
  v.required("attempt", a.attempt);
  v.required("outcome", a.outcome);
}
template <typename V>
void describe(V& v, Outcomes& o) {
  v.required("outcomes", o.outcomes);
}
template <typename V>
void describe(V& v, Goodbye& g) {
  v.optional("reason", g.reason);
}
template <typename V>
void describe(V& v, Welcome& w) {
  v.required("version", w.version);
  v.required("worker", w.worker);
  v.required("epoch", w.epoch);
  v.required("heartbeat_ms", w.heartbeat_ms);
}
template <typename V>
void describe(V& v, Reject& r) {
  v.required("reason", r.reason);
}
template <typename V>
void describe(V&, HelloAgain&) {}
template <typename V>
void describe(V& v, LeasedLayer& l) {
  if constexpr (std::is_same_v<V, wire::Reader>) {
    auto layer = std::make_shared<domain::Layer>();
    domain::describe_work(v, *layer);
    l.layer = std::move(layer);
  } else {
    domain::describe_work(v, const_cast<domain::Layer&>(*l.layer));  // writing changes nothing
  }
}
template <typename V>
void describe(V& v, LeasedJob& j) {
  v.required("attempt", j.attempt);
  v.required("stage", j.stage);
  v.optional("layer", j.layer);
  v.optional("executor", j.executor);
  v.required("prepare_job", j.prepare_job);
  v.required("compile_job", j.compile_job);
  v.required("prepared", j.prepared);
  v.required("artifact", j.artifact);
  v.optional("kept", j.kept);
  v.optional("tolerance", j.tolerance);
  v.optional("runs", j.runs);
  v.required("memory_factor", j.memory_factor);
}
template <typename V>
void describe(V& v, Lease& l) {
  v.required("chip", l.chip);
  v.optional("limits", l.limits);
  v.required("inputs", l.inputs);
  v.optional("layers", l.layers);
  v.optional("prepared", l.prepared);
  v.optional("artifacts", l.artifacts);
  v.required("jobs", l.jobs);
  v.optional("analyze", l.analyze);
  v.optional("whole", l.whole);
  v.required("compile_together", l.compile_together);
}
template <typename V>
void describe(V& v, OutcomesKept& k) {
  v.required("attempts", k.attempts);
}
template <typename V>
void describe(V& v, Cancel& c) {
  v.required("attempts", c.attempts);
}
template <typename V>
void describe(V& v, Stop& s) {
  v.optional("now", s.now);
}

}  // namespace layerfarm::protocol
