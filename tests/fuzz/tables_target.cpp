// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// What the reader makes of columns once HDF5 has read them: ops, traces, rows and texts.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "results/hdf5.hpp"
#include "results/point_tables.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using isoscale::fuzz::must;
namespace results = isoscale::results;

/// Takes numbers and columns off an input; zeros at its end. Most of what it makes fits together:
/// all else is refused by the first check.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  [[nodiscard]] T number() {
    T value{};
    const std::size_t taken = std::min(sizeof value, rest_.size());
    std::memcpy(&value, rest_.data(), taken);
    rest_.remove_prefix(taken);
    return value;
  }
  /// At most `end`, exclusive.
  [[nodiscard]] std::size_t below(std::size_t end) { return number<std::uint8_t>() % end; }
  [[nodiscard]] bool is_odd_one() { return below(32) == 1; }

  [[nodiscard]] std::string text() {
    const std::size_t wanted = below(32);
    const std::size_t length = std::min(wanted, rest_.size());
    std::string result{rest_.substr(0, length)};
    rest_.remove_prefix(length);
    return result;
  }
  /// Columns of one length.
  template <class... Columns>
  void columns(std::size_t length, Columns&... into) {
    (column(length, into), ...);
  }
  /// Where `parts` parts of `total` begin, and the end of the last.
  void offsets(std::size_t parts, std::size_t total, std::vector<std::uint64_t>& into) {
    into.assign(1, 0);
    for (std::size_t i = 0; i + 1 < parts; ++i) {
      into.push_back(is_odd_one() ? number<std::uint64_t>()
                                  : into.back() + below(total - std::min(total, into.back()) + 1));
    }
    if (parts > 0) into.push_back(total);
  }
  /// How many each of `parts` has of `total`.
  void counts(std::size_t parts, std::size_t total, std::vector<std::uint32_t>& into) {
    std::vector<std::uint64_t> begin;
    offsets(parts, total, begin);
    for (std::size_t i = 0; i < parts; ++i) {
      into.push_back(static_cast<std::uint32_t>(begin[i + 1] - begin[i]));
    }
  }

 private:
  void column(std::size_t length, std::vector<std::string>& into) {
    for (std::size_t i = 0; i < length; ++i) into.push_back(text());
  }
  template <class T>
  void column(std::size_t length, std::vector<T>& into) {
    if (is_odd_one()) ++length;
    for (std::size_t i = 0; i < length; ++i) {
      into.push_back(is_odd_one() ? number<T>() : static_cast<T>(below(4)));
    }
  }

  std::string_view rest_;
};

template <class Work>
void try_it(Work&& work) {
  try {
    work();
  } catch (const isoscale::base::Error&) {
    // Refused, as it may be.
  }
}

void try_ops(Input& input) {
  results::OpTable ops;
  isoscale::mesh::Shape mesh;
  mesh.tp = input.number<std::uint8_t>() % 4 + 1;
  mesh.dp = input.number<std::uint8_t>() % 4 + 1;
  const std::size_t outlines = 1 + input.below(3), streams = input.below(8), rows = input.below(16);
  const std::size_t waits = input.below(8), transfers = input.below(8);
  input.columns(input.below(9), ops.outline_of_rank);
  input.offsets(outlines, rows, ops.op_begin);
  input.offsets(outlines, streams, ops.stream_begin);
  input.columns(streams, ops.stream_names);
  input.columns(rows, ops.kind, ops.stream, ops.phase, ops.layer, ops.microbatch, ops.flop,
                ops.bytes, ops.axes);
  input.counts(rows, waits, ops.wait_count);
  input.counts(rows, transfers, ops.transfer_count);
  input.columns(waits, ops.wait_stream, ops.wait_ops);
  input.columns(transfers, ops.transfer_direction, ops.transfer_axis, ops.transfer_offset,
                ops.transfer_bytes);
  if (input.below(2) == 1) input.columns(rows, ops.gemm_shape);
  input.columns(input.below(4), ops.gemm_m, ops.gemm_n, ops.gemm_k, ops.gemm_batch);
  // Codes have been translated, and so are in range, when a table is made of a file.
  for (auto& kind : ops.kind) kind %= 4;
  for (auto& phase : ops.phase) phase %= 3;
  for (auto& direction : ops.transfer_direction) direction %= 2;
  for (auto& axis : ops.transfer_axis) axis %= 5;
  try_it([&] {
    const results::OpTable again = results::to_table(results::to_outlines(ops, mesh));
    must(again.kind == ops.kind && again.wait_ops == ops.wait_ops, "ops stay what they are");
  });
}

void try_traces(Input& input) {
  results::TraceTable traces;
  const std::size_t rows = input.below(16), spans = input.below(16);
  input.columns(rows, traces.timeline, traces.rank, traces.step, traces.begin, traces.end);
  input.offsets(rows, spans, traces.span_begin);
  input.columns(spans, traces.span_op, traces.span_start, traces.span_end);
  try_it([&] {
    const results::TraceTable again = results::to_table(results::to_timelines(traces));
    must(again.span_start == traces.span_start, "spans stay what they are");
  });
}

void try_rows(Input& input) {
  results::RowTable rows;
  const std::size_t count = input.below(8), members = input.below(8), times = input.below(24);
  const std::size_t calls = input.below(8);
  input.columns(count, rows.text[input.text()], rows.number[input.text()], rows.calls, rows.plays,
                rows.status, rows.reason, rows.wrong);
  input.offsets(count, members, rows.ranks_begin);
  input.offsets(count, times, rows.time_begin);
  input.offsets(count, calls, rows.call_time_begin);
  input.columns(members, rows.ranks);
  input.columns(times, rows.time);
  input.columns(calls, rows.call_time);
  for (auto& status : rows.status) status %= 3;
  const int ranks = input.number<std::uint8_t>() % 16 + 1;
  try_it([&] { (void)results::to_table(results::to_rows(rows, ranks)); });
}

void try_text(std::string_view bytes) {
  const std::string once = results::hdf5::valid_utf8(bytes);
  must(results::hdf5::valid_utf8(once) == once, "what is UTF-8 stays as it is");
  must(once.size() <= 3 * bytes.size(), "U+FFFD stands for a byte or more");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};           // NOLINT
  try_text(bytes);
  Input input{bytes};
  switch (input.number<std::uint8_t>() % 3) {
    case 0:
      try_ops(input);
      break;
    case 1:
      try_traces(input);
      break;
    default:
      try_rows(input);
  }
  return 0;
}
