// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <map>

#include "workloads/bench/pattern.hpp"
#include "workloads/collectives/cases.hpp"
#include "workloads/collectives/collectives.hpp"

namespace isoscale::workloads::collectives {
namespace {

/// What one rank holds after the calls of a case. Buffers of a type are numbered as they are
/// allocated: source, work, and scratch where a textbook algorithm needs it.
class Expecter {
 public:
  Expecter(const Request& request, const Setting& setting, int rank, program::BufferId source)
      : setting_(setting),
        rank_(rank),
        place_(mesh::group_index(request.mesh, rank, setting.axis)),
        members_(mesh::group_members(request.mesh, rank, setting.axis)),
        source_(source) {}

  std::vector<Expectation> of(const CollectiveCase& one) {
    result_.clear();
    for (std::uint64_t call = 0; call < one.calls; ++call) received(one, call * one.stride);
    if (one.place == Place::out_of_place) {
      // What was sent is still there.
      result_.push_back({.slice = {.buffer = source_, .count = one.calls * one.stride},
                         .sources = {rank_},
                         .first = 0});
    }
    return result_;
  }

 private:
  [[nodiscard]] int root() const { return members_[static_cast<std::size_t>(setting_.root)]; }
  [[nodiscard]] bool is_root() const { return place_ == setting_.root; }

  void add(std::uint64_t offset, std::uint64_t count, std::vector<int> sources, std::uint64_t first,
           const CollectiveCase& one) {
    result_.push_back({.slice = {.buffer = source_ + 1, .offset = offset, .count = count},
                       .sources = std::move(sources),
                       .reduction = one.reduction.value_or(program::Reduction::sum),
                       .first = first});
  }

  /// `base`: element at which the call's data begins, in both buffers and so in the pattern.
  void received(const CollectiveCase& one, std::uint64_t base) {
    const auto n = static_cast<std::uint64_t>(setting_.members);
    const auto me = static_cast<std::uint64_t>(place_);
    const bool in_place = one.place == Place::in_place;
    const std::uint64_t own = base + me * one.count;
    switch (one.operation) {
      case Operation::all_reduce:
        return add(base, one.stride, members_, base, one);
      case Operation::reduce:
        if (is_root()) add(base, one.stride, members_, base, one);
        return;
      case Operation::reduce_scatter:
        return add(in_place ? own : base, one.count, members_, own, one);
      case Operation::broadcast:
        return add(base, one.stride, {root()}, base, one);
      case Operation::scatter:
        return add(in_place ? own : base, one.count, {root()}, own, one);
      case Operation::gather:
        if (!is_root()) return;
        [[fallthrough]];
      case Operation::all_gather:
        for (std::uint64_t other = 0; other < n; ++other) {
          // Out of place each sends the first part of its pattern, in place the part of its place.
          add(base + other * one.count, one.count, {members_[other]},
              in_place ? base + other * one.count : base, one);
        }
        return;
      case Operation::all_to_all:
        for (std::uint64_t other = 0; other < n; ++other) {
          add(base + other * one.count, one.count, {members_[other]}, own, one);
        }
        return;
      case Operation::sendrecv:
        return add(base, one.stride, {members_[(me + n - 1) % n]}, base, one);
      case Operation::barrier:
        return;
    }
  }

  const Setting& setting_;
  int rank_, place_;
  std::vector<int> members_;
  program::BufferId source_;
  std::vector<Expectation> result_;
};

}  // namespace

std::vector<Expectation> expect(const Request& request, int /*batch*/, std::size_t index,
                                int rank) {
  const Setting setting = setting_of(request);
  const std::vector<CollectiveCase> cases = cases_of(request, setting);
  std::map<program::DType, bool> has_scratch;  // in the order in which buffers are allocated
  for (const CollectiveCase& one : cases) {
    if (one.operation == Operation::barrier) continue;
    has_scratch[one.type] |= one.implementation != Implementation::library;
  }
  std::map<program::DType, program::BufferId> source;
  program::BufferId next = 0;
  for (const auto& [type, scratch] : has_scratch) {
    source[type] = next;
    next += scratch ? 3 : 2;
  }
  const CollectiveCase& one = cases.at(index);
  const bool idle =
      one.groups == Groups::one && mesh::group_colour(request.mesh, rank, setting.axis) != 0;
  if (idle || one.operation == Operation::barrier) return {};
  return Expecter{request, setting, rank, source.at(one.type)}.of(one);
}

}  // namespace isoscale::workloads::collectives
