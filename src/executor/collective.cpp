// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/collective.hpp"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "base/error.hpp"

namespace isoscale::executor {
namespace {

using program::CollectiveKind;

class SizeCheck {
 public:
  SizeCheck(const program::Collective& op, CollectiveData& data) : op_(op), data_(data) {}

  void set_counts() {
    switch (op_.kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce:
        data_.count = op_.send.count;
        return sends(op_.receive.count);
      case CollectiveKind::broadcast:
        data_.count = data_.receive != nullptr ? op_.receive.count : op_.send.count;
        if (data_.is_root && data_.send != nullptr) sends(data_.count);
        return;
      case CollectiveKind::reduce_scatter:
        data_.count = op_.receive.count;
        return sends(data_.count * data_.members);
      case CollectiveKind::all_gather:
        data_.count = op_.send.count;
        return receives(data_.count * data_.members);
      case CollectiveKind::gather:
        data_.count = op_.send.count;
        if (data_.is_root) receives(data_.count * data_.members);
        return;
      case CollectiveKind::scatter:
        data_.count = op_.receive.count;
        if (data_.is_root) sends(data_.count * data_.members);
        return;
      case CollectiveKind::all_to_all:
        return op_.send_counts.empty() && op_.receive_counts.empty() ? set_even() : set_uneven();
      case CollectiveKind::barrier:
        return;
    }
  }

 private:
  void sends(std::uint64_t count) const { require(op_.send, count, "what is sent"); }
  void receives(std::uint64_t count) const { require(op_.receive, count, "what is received"); }

  void require(const program::Slice& slice, std::uint64_t count, const char* what) const {
    if (slice.buffer != program::no_buffer && slice.count == count) return;
    throw base::Error(fmt::format("{} has {} elements in a group of {}; it should have {}", what,
                                  slice.count, data_.members, count));
  }

  void set_even() {
    data_.count = op_.send.count / data_.members;
    data_.sent = data_.received = data_.count * data_.members;
    sends(data_.sent);
    receives(data_.received);
  }

  void set_uneven() {
    if (op_.send_counts.size() != data_.members || op_.receive_counts.size() != data_.members) {
      throw base::Error(fmt::format("{} and {} counts for a group of {}", op_.send_counts.size(),
                                    op_.receive_counts.size(), data_.members));
    }
    const auto total = [](const std::vector<std::uint64_t>& counts) {
      return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    };
    data_.sent = total(op_.send_counts);
    data_.received = total(op_.receive_counts);
    if (data_.sent > 0) sends(data_.sent);
    if (data_.received > 0) receives(data_.received);
  }

  const program::Collective& op_;
  CollectiveData& data_;
};

}  // namespace

CollectiveData resolve(const Resolver& resolver, const program::Collective& op) {
  CollectiveData data{
      .members = static_cast<std::uint64_t>(mesh::group_size(resolver.mesh(), op.axes)),
      .me =
          static_cast<std::uint64_t>(mesh::group_index(resolver.mesh(), resolver.rank(), op.axes)),
      .send = resolver.address_or_null(op.send),
      .receive = resolver.address_or_null(op.receive)};
  if (op.kind == CollectiveKind::barrier) return data;
  if (data.send == nullptr && data.receive == nullptr) {
    throw base::Error("a collective without data");
  }
  if (data.send != nullptr && data.receive != nullptr &&
      resolver.dtype(op.send) != resolver.dtype(op.receive)) {
    throw base::Error("what is sent and what is received differ in type");
  }
  if (op.root < 0 || static_cast<std::uint64_t>(op.root) >= data.members) {
    throw base::Error(fmt::format("root {} of a group of {}", op.root, data.members));
  }
  data.is_root = data.me == static_cast<std::uint64_t>(op.root);
  data.type = resolver.dtype(data.send != nullptr ? op.send : op.receive);
  data.element = program::element_size(data.type);
  SizeCheck{op, data}.set_counts();
  return data;
}

}  // namespace isoscale::executor
