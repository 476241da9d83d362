// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/operand_addresses.hpp"

#include <fmt/format.h>

#include <numeric>

#include "base/error.hpp"

namespace isoscale::executor {
namespace {

using program::CollectiveKind;

std::uint64_t total(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

/// Sets the counts in `data` from the slices of a collective, and checks that they fit the size of
/// the group.
void set_counts(const program::Collective& op, CollectiveData& data) {
  const auto require = [&](const program::Slice& slice, std::uint64_t count, const char* what) {
    if (slice.buffer != program::no_buffer && slice.count == count) return;
    throw base::Error(fmt::format("{} has {} elements in a group of {}; it should have {}", what,
                                  slice.count, data.members, count));
  };
  const auto sends = [&](std::uint64_t count) { require(op.send, count, "what is sent"); };
  const auto receives = [&](std::uint64_t count) {
    require(op.receive, count, "what is received");
  };
  const bool is_even = op.send_counts.empty() && op.receive_counts.empty();
  switch (op.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
      data.count = op.send.count;
      return sends(op.receive.count);
    case CollectiveKind::broadcast:
      data.count = data.receive != nullptr ? op.receive.count : op.send.count;
      if (data.is_root && data.send != nullptr) sends(data.count);
      return;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      data.count = op.receive.count;
      if (op.kind != CollectiveKind::scatter || data.is_root) sends(data.count * data.members);
      return;
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      data.count = op.send.count;
      if (op.kind != CollectiveKind::gather || data.is_root) receives(data.count * data.members);
      return;
    case CollectiveKind::all_to_all:
      if (is_even) data.count = op.send.count / data.members;
      data.sent = is_even ? data.count * data.members : total(op.send_counts);
      data.received = is_even ? data.sent : total(op.receive_counts);
      if (!is_even &&
          (op.send_counts.size() != data.members || op.receive_counts.size() != data.members)) {
        throw base::Error(fmt::format("{} and {} counts for a group of {}", op.send_counts.size(),
                                      op.receive_counts.size(), data.members));
      }
      if (is_even || data.sent > 0) sends(data.sent);
      if (is_even || data.received > 0) receives(data.received);
      return;
    case CollectiveKind::barrier:
      return;
  }
}

}  // namespace

Resolver::Resolver(const program::RankProgram& program, const mesh::Shape& mesh, int rank,
                   const ArenaPointers& arenas)
    : buffers_(program.buffers),
      arena_bytes_(program.arena_bytes),
      mesh_(mesh),
      rank_(rank),
      coordinates_(mesh::coordinates(mesh, rank)),
      arenas_(arenas) {}

const program::Buffer& Resolver::buffer(const program::Slice& slice) const {
  if (slice.buffer >= buffers_.size()) {
    throw base::Error(fmt::format("a slice names buffer {}, but the program has {} buffers",
                                  slice.buffer, buffers_.size()));
  }
  return buffers_[slice.buffer];
}

std::byte* Resolver::address(const program::Slice& slice) const {
  const program::Buffer& buffer = this->buffer(slice);
  const std::uint64_t first = slice.first(coordinates_);
  if (first > buffer.count || slice.count > buffer.count - first) {
    throw base::Error(fmt::format("elements {} to {} of buffer {} are used, but it has {} elements",
                                  first, first + slice.count, slice.buffer, buffer.count));
  }
  const auto space = static_cast<std::size_t>(buffer.space);
  const std::uint64_t size = program::element_size(buffer.dtype);
  const std::uint64_t end = buffer.offset + buffer.count * size;
  if (end > arena_bytes_[space]) {
    throw base::Error(fmt::format("buffer {} ends at byte {} of its arena of {} bytes",
                                  slice.buffer, end, arena_bytes_[space]));
  }
  return arenas_[space] + buffer.offset + first * size;
}

std::byte* Resolver::address(const program::Slice& slice, std::size_t bytes) const {
  const std::size_t expected = slice.count * element_size(slice);
  if (bytes == expected) return address(slice);
  throw base::Error(
      fmt::format("{} bytes for a slice of {} elements, {} bytes", bytes, slice.count, expected));
}

program::DType Resolver::dtype(const program::Slice& slice) const { return buffer(slice).dtype; }

program::Space Resolver::space(const program::Slice& slice) const { return buffer(slice).space; }

std::size_t Resolver::element_size(const program::Slice& slice) const {
  return program::element_size(dtype(slice));
}

StridedCopy merged(StridedCopy copy) {
  // If the rows of a matrix are contiguous in source and destination, they become one row. If the
  // matrices of the batch are then contiguous, too, they become one in the same way.
  if (copy.rows == 1 || (copy.src_row == copy.row_bytes && copy.dst_row == copy.row_bytes)) {
    copy.row_bytes *= copy.rows;
    copy.rows = copy.batch;
    copy.src_row = copy.src_batch;
    copy.dst_row = copy.dst_batch;
    copy.batch = 1;
  }
  if (copy.batch == 1 && copy.src_row == copy.row_bytes && copy.dst_row == copy.row_bytes) {
    copy.row_bytes *= copy.rows;
    copy.rows = 1;
  }
  return copy;
}

CollectiveData resolve(const Resolver& resolver, const program::Collective& op) {
  const auto address_or_null = [&](const program::Slice& slice) {
    return slice.buffer == program::no_buffer ? nullptr : resolver.address(slice);
  };
  CollectiveData data{
      .members = static_cast<std::uint64_t>(mesh::group_size(resolver.mesh(), op.axes)),
      .me =
          static_cast<std::uint64_t>(mesh::group_index(resolver.mesh(), resolver.rank(), op.axes)),
      .send = address_or_null(op.send),
      .receive = address_or_null(op.receive)};
  if (op.kind == CollectiveKind::barrier) return data;
  if (data.send == nullptr && data.receive == nullptr) {
    throw base::Error("a collective without data");
  }
  if (data.send != nullptr && data.receive != nullptr &&
      resolver.dtype(op.send) != resolver.dtype(op.receive)) {
    throw base::Error("the sent and the received data have different types");
  }
  if (op.root < 0 || static_cast<std::uint64_t>(op.root) >= data.members) {
    throw base::Error(fmt::format("root {} of a group of {}", op.root, data.members));
  }
  data.is_root = data.me == static_cast<std::uint64_t>(op.root);
  data.type = resolver.dtype(data.send != nullptr ? op.send : op.receive);
  data.element = program::element_size(data.type);
  set_counts(op, data);
  return data;
}

}  // namespace isoscale::executor
