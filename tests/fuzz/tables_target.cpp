// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// Feeds the reader with datasets as HDF5 returns them: ops, traces, rows and texts.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "results/hdf5/hdf5.hpp"
#include "results/records/point_layout.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using isoscale::fuzz::must;
namespace program = isoscale::program;
namespace results = isoscale::results;

/// Takes numbers and texts off an input; zeros at its end.
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

 private:
  std::string_view rest_;
};

/// Datasets that are made of an input. Most of what it makes fits together: all else is refused by
/// the first check.
class Datasets {
 public:
  using Names = std::initializer_list<const char*>;
  explicit Datasets(Input& input) : input_(input) {}

  /// Makes datasets of numbers or codes that have one length.
  void numbers(std::size_t length, Names names) {
    for (const char* const name : names) {
      std::vector<std::int64_t>& values = numbers_[name];
      const std::size_t count = length + (input_.is_odd_one() ? 1 : 0);
      while (values.size() < count) {
        values.push_back(input_.is_odd_one() ? input_.number<std::int64_t>()
                                             : static_cast<std::int64_t>(input_.below(4)));
      }
    }
  }
  void texts(std::size_t length, Names names) {
    for (const char* const name : names) {
      for (std::size_t i = 0; i < length; ++i) texts_[name].push_back(input_.text());
    }
  }
  /// Makes the dataset of where `parts` parts of `total` begin, and the end of the last.
  void offsets(std::size_t parts, std::size_t total, const char* name) {
    const std::vector<std::size_t> begin = offsets(parts, total);
    numbers_[name].assign(begin.begin(), begin.end());
  }
  /// Makes the dataset of how many each of `parts` has of `total`.
  void counts(std::size_t parts, std::size_t total, const char* name) {
    const std::vector<std::size_t> begin = offsets(parts, total);
    for (std::size_t i = 0; i < parts; ++i) {
      numbers_[name].push_back(static_cast<std::int64_t>(begin[i + 1] - begin[i]));
    }
  }

  template <class T>
  [[nodiscard]] std::vector<T> read(const std::string& name) const {
    if constexpr (std::is_same_v<T, std::string>) {
      return found(texts_, name);
    } else {
      const std::vector<std::int64_t> values = found(numbers_, name);
      std::vector<T> result;
      for (const std::int64_t value : values) result.push_back(static_cast<T>(value));
      return result;
    }
  }
  /// Codes are below 4, so that the names of most enumerations have them.
  [[nodiscard]] static std::vector<std::string> names_of_codes(const std::string& name) {
    std::vector<std::string> names =
        name == "kind"                 ? results::code_names<program::OpKind>()
        : name == "phase"              ? results::code_names<program::Phase>()
        : name == "transfer_direction" ? results::code_names<program::Direction>()
        : name == "transfer_axis"      ? results::code_names<isoscale::mesh::Axis>()
                                       : results::code_names<results::PointStatus>();
    for (std::size_t code = 0; names.size() < 4; ++code) names.push_back(names[code]);
    return names;
  }
  /// The groups of keys have one key each.
  [[nodiscard]] Datasets open_group(const std::string& name) const {
    Datasets group{input_};
    group.only_ = name;
    group.numbers_ = numbers_;
    group.texts_ = texts_;
    return group;
  }
  [[nodiscard]] std::vector<std::string> names() const { return {only_}; }

 private:
  template <class Values>
  static Values found(const std::map<std::string, Values>& all, const std::string& name) {
    const auto at = all.find(name);
    return at == all.end() ? Values{} : at->second;
  }
  [[nodiscard]] std::vector<std::size_t> offsets(std::size_t parts, std::size_t total) {
    std::vector<std::size_t> begin{0};
    for (std::size_t i = 0; i + 1 < parts; ++i) {
      const std::size_t left = total - std::min(total, begin.back());
      begin.push_back(input_.is_odd_one() ? input_.number<std::size_t>()
                                          : begin.back() + input_.below(left + 1));
    }
    if (parts > 0) begin.push_back(total);
    return begin;
  }

  Input& input_;  ///< not owned
  std::string only_;
  std::map<std::string, std::vector<std::int64_t>> numbers_;
  std::map<std::string, std::vector<std::string>> texts_;
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
  Datasets ops{input};
  const std::size_t outlines = 1 + input.below(3), streams = input.below(8), rows = input.below(16);
  const std::size_t waits = input.below(8), transfers = input.below(8);
  ops.numbers(input.below(9), {"program_of_rank"});
  ops.offsets(outlines, rows, "op_begin");
  ops.offsets(outlines, streams, "stream_begin");
  ops.texts(streams, {"stream_names"});
  ops.numbers(rows, {"kind", "stream", "phase", "layer", "microbatch", "flop", "bytes", "axes"});
  ops.counts(rows, waits, "wait_count");
  ops.counts(rows, transfers, "transfer_count");
  ops.numbers(waits, {"wait_stream", "wait_ops"});
  ops.numbers(transfers,
              {"transfer_direction", "transfer_axis", "transfer_offset", "transfer_bytes"});
  const int minor = input.below(2) == 1 ? 6 : 5;  // with the shapes of multiplications, or without
  ops.numbers(rows, {"gemm_shape"});
  ops.numbers(input.below(4), {"gemm_m", "gemm_n", "gemm_k", "gemm_batch"});
  try_it([&] {
    results::PointData point;
    results::get_record(ops, point.outline, minor);
    for (const program::Outline& outline : point.outline.outlines) {
      for (const program::OutlineOp& op : outline.ops) {
        must(op.wait_begin + op.wait_count <= outline.waits.size() &&
                 op.transfer_begin + op.transfer_count <= outline.transfers.size(),
             "an op has the waits and transfers that are there");
      }
    }
    validate(point);
  });
}

void try_traces(Input& input) {
  Datasets traces{input};
  const std::size_t rows = input.below(16), spans = input.below(16);
  traces.numbers(rows, {"timeline", "rank", "step", "begin", "end"});
  traces.offsets(rows, spans, "span_begin");
  traces.numbers(spans, {"span_op", "span_start", "span_end"});
  try_it([&] {
    using isoscale::timeline::Timeline;
    const auto timelines = results::get_rows<Timeline>(traces, 8, "traces");
    std::size_t total = 0;
    for (const Timeline& timeline : timelines) {
      must(!timeline.ranks.empty(), "a timeline has ranks");
      total += timeline.ranks.size();
    }
    must(total == traces.read<std::uint32_t>("rank").size(), "traces stay as many");
  });
}

void try_rows(Input& input) {
  Datasets rows{input};
  const std::size_t count = input.below(8), members = input.below(8), times = input.below(24);
  const std::size_t calls = input.below(8);
  rows.texts(count, {"text", "reason"});
  rows.numbers(count, {"number", "calls", "plays", "status", "wrong"});
  rows.offsets(count, members, "ranks_begin");
  rows.offsets(count, times, "time_begin");
  rows.offsets(count, calls, "call_time_begin");
  rows.numbers(members, {"ranks"});
  rows.numbers(times, {"time"});
  rows.numbers(calls, {"call_time"});
  results::PointData point;
  point.ranks = input.number<std::uint8_t>() % 16 + 1;
  point.mesh.dp = point.ranks;
  try_it([&] {
    point.rows = results::get_rows<results::RowData>(rows, 8, "rows");
    validate(point);
  });
}

void try_text(std::string_view bytes) {
  const std::string once = results::valid_utf8(bytes);
  must(results::valid_utf8(once) == once, "what is UTF-8 stays as it is");
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
