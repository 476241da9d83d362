// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/expectations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "workloads/bench/exact_data.hpp"

namespace isoscale::runner {
namespace {

using workloads::pattern_period;

constexpr std::size_t most_tables = 256;  // 128 KiB to 1 MiB each

/// Compares a stretch element by element; `begin` is its first element's place in the slice.
void count_wrong(std::span<const std::byte> got, std::span<const std::byte> expected,
                 std::uint64_t element, std::uint64_t begin, Comparison& result) {
  for (std::uint64_t at = 0; at < got.size(); at += element) {
    if (std::memcmp(got.data() + at, expected.data() + at, element) == 0) continue;
    ++result.wrong;
    if (result.first.empty()) result.first = fmt::format("element {}", begin + at / element);
  }
}

}  // namespace

const std::vector<std::byte>& Expectations::table(const workloads::Expectation& expected) {
  const program::DType type = buffers_.at(expected.slice.buffer).dtype;
  if (tables_.size() >= most_tables) tables_.clear();
  std::vector<std::byte>& table = tables_[{type, expected.sources, expected.reduction}];
  if (table.empty()) {
    table = workloads::pattern_table(type, ranks_, expected.sources, expected.reduction);
    const std::size_t period = table.size();
    table.resize(2 * period);
    std::copy_n(table.begin(), period, table.begin() + static_cast<std::ptrdiff_t>(period));
  }
  return table;
}

Comparison Expectations::compare(executor::Session& session,
                                 std::span<const workloads::Expectation> expected) {
  // By source, so that each table is made once however many there are.
  std::vector<const workloads::Expectation*> order;
  for (const workloads::Expectation& one : expected) order.push_back(&one);
  std::ranges::stable_sort(order, {}, [](const auto* one) -> const auto& { return one->sources; });
  Comparison result;
  std::vector<std::byte> got;
  for (const workloads::Expectation* const next : order) {
    const workloads::Expectation& one = *next;
    const std::uint64_t element = program::element_size(buffers_.at(one.slice.buffer).dtype);
    const std::span<const std::byte> truth{table(one)};
    // Blocks of at most a period, so that the truth of each is one stretch of the doubled table.
    for (std::uint64_t done = 0; done < one.slice.count; done += pattern_period) {
      program::Slice slice = one.slice;
      slice.offset += done;
      slice.count = std::min(pattern_period, one.slice.count - done);
      got.resize(slice.count * element);
      session.read(slice, got);
      const auto stretch = truth.subspan((one.first + done) % pattern_period * element, got.size());
      result.compared += slice.count;
      if (std::memcmp(got.data(), stretch.data(), got.size()) != 0) {
        count_wrong(got, stretch, element, done, result);
      }
    }
  }
  return result;
}

Comparison Expectations::compare(executor::Session& session,
                                 std::span<const program::Gemm> products) const {
  Comparison result;
  std::vector<std::byte> got;
  const auto type = [&](const program::Matrix& matrix) {
    return buffers_.at(matrix.slice.buffer).dtype;
  };
  for (const program::Gemm& gemm : products) {
    const workloads::ProductTypes types{.a = type(gemm.a), .b = type(gemm.b), .d = type(gemm.d)};
    const std::uint64_t element = program::element_size(types.d), row = gemm.n * element;
    for (std::uint32_t batch = 0; batch < gemm.batch; ++batch) {
      const std::vector<std::byte> truth = workloads::product_rows(gemm, types, batch);
      // The rows that differ, again and again.
      const std::uint64_t period = truth.size() / row;
      for (std::uint64_t done = 0; done < gemm.m; done += period) {
        program::Slice slice = gemm.d.slice;
        const std::uint64_t begin = (std::uint64_t{batch} * gemm.m + done) * gemm.n;
        slice.offset += begin;
        slice.count = std::min(period, gemm.m - done) * gemm.n;
        got.resize(slice.count * element);
        session.read(slice, got);
        result.compared += slice.count;
        if (std::memcmp(got.data(), truth.data(), got.size()) != 0) {
          count_wrong(got, truth, element, begin, result);
        }
      }
    }
  }
  return result;
}

}  // namespace isoscale::runner
