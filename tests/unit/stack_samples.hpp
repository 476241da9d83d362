// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/work_and_memory.hpp"
#include "request_text.hpp"
#include "words.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

/// Small models of the workload hybrid, and what their programs send, hold and compute.
namespace isoscale::workloads {

/// A model of the numbers in `extents`, such as "hidden=32 gated=1". The others are so small that
/// thousands of programs are built in seconds.
inline Model model_of(const std::string& extents) {
  return test_model(
      "hidden=16 ffn=64 heads=8 kv_heads=8 head_size=2 layers=4 sequence=4 vocabulary=32 " +
      extents);
}

/// Two samples in a microbatch unless `options` say otherwise.
inline Request request_of(const std::string& extents, int microbatches, Options options = {},
                          Precision precision = Precision::f32) {
  options.try_emplace("microbatch", "2");
  options["microbatches"] = std::to_string(microbatches);
  return {.model = model_of(extents), .precision = precision, .options = std::move(options)};
}

inline Request small(int layers, int microbatches, Options options = {}) {
  return request_of("layers=" + std::to_string(layers), microbatches, std::move(options));
}

inline Request scaled(const Request& base, const mesh::Shape& mesh, Scaling scaling) {
  return find_workload("hybrid").scale(base, mesh, scaling);
}

inline program::ProgramSet build(const Request& base, const mesh::Shape& mesh, Scaling scaling) {
  return find_workload("hybrid").build(scaled(base, mesh, scaling));
}
inline program::ProgramSet weak(const Request& base, const mesh::Shape& mesh) {
  return build(base, mesh, Scaling::weak);
}
inline program::ProgramSet strong(const Request& base, const mesh::Shape& mesh) {
  return build(base, mesh, Scaling::strong);
}

/// Returns why no programs are built for this mesh, "" when they are.
inline std::string refused(const Request& base, const mesh::Shape& mesh,
                           Scaling scaling = Scaling::strong) {
  return testing_support::refusal([&] { static_cast<void>(build(base, mesh, scaling)); });
}

/// Requests of programs that are refused on a mesh, with words of the refusal.
struct RefusedOn {
  Request base;
  mesh::Shape mesh;
  testing_support::Words words;
};
inline void expect_refused(const std::vector<RefusedOn>& cases, Scaling scaling = Scaling::strong) {
  for (const auto& [base, mesh, words] : cases) {
    SCOPED_TRACE(testing::PrintToString(base.options) + " on " + mesh::to_string(mesh));
    testing_support::expect_words(refused(base, mesh, scaling), words);
  }
}

inline program::Facts facts_of(const program::ProgramSet& set, int rank = 0) {
  return program::facts(set.of(rank), set.mesh);
}

/// Returns the sum of value(op) over the ops of a step of the first rank.
template <class Value>
[[nodiscard]] auto sum_over_step(const program::ProgramSet& set, const Value& value) {
  const auto step = program::outline(set.of(0), program::Section::step, set.mesh);
  decltype(value(step.ops.front())) sum{};
  for (const program::OutlineOp& op : step.ops) sum += value(op);
  return sum;
}
inline double flop_in(const program::ProgramSet& set, program::Phase phase) {
  return sum_over_step(set, [&](const auto& op) { return op.place.phase == phase ? op.flop : 0; });
}
/// Returns the bytes that copies read and write.
inline std::uint64_t copied_in(const program::ProgramSet& set) {
  return sum_over_step(
      set, [](const auto& op) { return op.kind == program::OpKind::copy ? op.bytes : 0; });
}

inline double flop_of(const program::ProgramSet& set, int rank = 0) {
  return facts_of(set, rank).flop.value();
}

/// Returns the bytes that a rank puts on links by the entries of its traffic that are `wanted`.
template <class Wanted>
double sent_in(const program::Facts& facts, const Wanted& wanted) {
  double sum = 0;
  for (const program::Traffic& entry : facts.traffic) {
    if (wanted(entry)) sum += static_cast<double>(entry.sent.value());
  }
  return sum;
}
inline double sent_in(const program::Facts& facts, program::OpKind kind) {
  return sent_in(facts, [&](const program::Traffic& entry) { return entry.kind == kind; });
}
inline double sent_in(const program::Facts& facts, program::OpKind kind, mesh::AxisSet axes) {
  return sent_in(facts, [&](const program::Traffic& entry) {
    return entry.kind == kind && entry.axes == axes;
  });
}

inline double peak_of(const program::Facts& facts, program::Role role) {
  return static_cast<double>(facts.peak_of_role[static_cast<std::size_t>(role)].value());
}

inline double bytes_of(const program::RankProgram& program, program::Role role) {
  double bytes = 0;
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.role != role) continue;
    bytes += static_cast<double>(buffer.count * program::element_size(buffer.dtype));
  }
  return bytes;
}

inline double flop_in_all(const program::ProgramSet& set) {
  double sum = 0;
  for (int rank = 0; rank < set.mesh.size(); ++rank) sum += flop_of(set, rank);
  return sum;
}

/// Returns the ops of the step that are of one kind, with their operands.
template <class Payload>
std::vector<std::pair<const program::Op*, const Payload*>> all_of(
    const program::RankProgram& program) {
  std::vector<std::pair<const program::Op*, const Payload*>> found;
  for (const program::Op& op : program.step().ops) {
    if (const auto* payload = std::get_if<Payload>(&op.payload)) found.emplace_back(&op, payload);
  }
  return found;
}

/// Returns how many ops of the step are `wanted`.
template <class Wanted>
int count_ops(const program::RankProgram& program, const Wanted& wanted) {
  return static_cast<int>(std::ranges::count_if(program.step().ops, wanted));
}

}  // namespace isoscale::workloads
