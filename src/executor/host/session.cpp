// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace isoscale::executor::host {
namespace {

ArenaPointers pointers(const std::array<Storage, program::space_count>& arenas) {
  ArenaPointers result{};
  for (std::size_t i = 0; i < arenas.size(); ++i) result[i] = arenas[i].get().address;
  return result;
}

program::RankProgram table_of(const program::RankProgram& program) {
  return {.buffers = program.buffers,
          .arena_bytes = program.arena_bytes,
          .streams = program.streams,
          .setup = {},
          .steps = {},
          .observables = {}};
}

}  // namespace

HostSession::HostSession(const program::ProgramSet& set, int rank, SessionParts parts)
    : parts_(std::move(parts)),
      table_(table_of(set.of(rank))),
      resolver_(table_, set.mesh, rank, pointers(parts_.arenas)) {
  std::size_t lanes = 1;
  for (const program::Program* program : set.of(rank).sections()) {
    const PreparedSection& section =
        sections_.emplace_back(prepare(resolver_, *program, parts_.communicators, parts_.options));
    lanes = std::max(lanes, section.lanes.size());
  }
  player_.waiting = parts_.waiting;
  player_.stopped = &interrupted_;
  if (lanes > 1) threads_ = std::make_unique<StreamThreads>(lanes, parts_.waiting);
}

HostSession::~HostSession() {
  threads_.reset();
  if (!failed_) return;
  // Messages may still be under way: their storage and communicators must outlive us.
  parts_.communicators.abandon();
  for (Storage& arena : parts_.arenas) static_cast<void>(arena.release());
  for (Storage& staging : parts_.staging) static_cast<void>(staging.release());
}

PlayTime HostSession::play(const Play& what) {
  if (failed_) throw base::Error("a session whose play has failed cannot play again");
  const PreparedSection& prepared = sections_.at(static_cast<std::size_t>(what.section));
  Spans spans;
  if (what.trace == Trace::on) {
    spans_.resize(prepared.op_count);
    spans = spans_;
  }
  player_.patience = units::to_nanoseconds(what.timeout);
  if (threads_) threads_->set_patience(player_.patience);
  section_.store(what.section, std::memory_order_relaxed);
  playing_.store(true, std::memory_order_relaxed);
  const units::Nanoseconds begin = comm::now();
  try {
    play_section(prepared, what.trace == Trace::on ? 1 : what.times, spans);
  } catch (...) {
    failed_ = true;
    playing_.store(false, std::memory_order_relaxed);
    throw;
  }
  const units::Nanoseconds end = comm::now();
  playing_.store(false, std::memory_order_relaxed);
  return {.begin = begin, .end = end};
}

void HostSession::play_section(const PreparedSection& section, std::uint32_t times, Spans spans) {
  for (std::uint32_t pass = 0; pass < times; ++pass) {
    plays_.fetch_add(1, std::memory_order_relaxed);
    if (threads_ && section.lanes.size() > 1) {
      threads_->play(section, spans);
    } else {
      play_inline(section, player_, spans);
    }
  }
}

std::optional<Whereabouts> HostSession::whereabouts() const {
  Whereabouts result{.section = section_.load(std::memory_order_relaxed),
                     .plays = plays_.load(std::memory_order_relaxed),
                     .playing = playing_.load(std::memory_order_relaxed)};
  const auto section = static_cast<std::size_t>(result.section);
  if (threads_ && sections_.at(section).lanes.size() > 1) {
    result.begun = threads_->begun();
  } else {
    result.begun = {player_.begun.load(std::memory_order_relaxed)};
  }
  return result;
}

void HostSession::interrupt() noexcept {
  interrupted_.store(true, std::memory_order_release);
  if (threads_) threads_->interrupt();
}

void HostSession::read(const program::Slice& slice, std::span<std::byte> into) {
  std::memcpy(into.data(), address(slice, into.size()), into.size());
}

void HostSession::write(const program::Slice& slice, std::span<const std::byte> from) {
  std::memcpy(address(slice, from.size()), from.data(), from.size());
}

std::byte* HostSession::address(const program::Slice& slice, std::size_t bytes) const {
  const std::size_t expected = slice.count * resolver_.element_size(slice);
  if (bytes != expected) {
    throw base::Error(
        fmt::format("{} bytes for a slice of {} elements, {} bytes", bytes, slice.count, expected));
  }
  return resolver_.address(slice);
}

}  // namespace isoscale::executor::host
