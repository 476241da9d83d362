// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/executor.hpp"
#include "executor/host/communicators.hpp"
#include "executor/host/memory.hpp"
#include "executor/host/prepare.hpp"
#include "executor/host/resolve.hpp"
#include "executor/host/streams.hpp"

namespace isoscale::executor::host {

/// What a session is made from, beside the program.
struct SessionParts {
  Communicators communicators;
  std::array<Storage, program::space_count> arenas;
  std::array<Storage, program::max_streams> staging;  ///< see staging_bytes
  SessionFacts facts;
  PrepareOptions options;
  Waiting waiting = Waiting::blocking;  ///< of the calling thread
};

class HostSession final : public Session {
 public:
  HostSession(const program::ProgramSet& set, int rank, SessionParts parts);
  ~HostSession() override;
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;

  using Session::play;
  PlayTime play(const Play& what) override;
  [[nodiscard]] std::span<const timeline::Span> spans() const override { return spans_; }
  void read(const program::Slice& slice, std::span<std::byte> into) override;
  void write(const program::Slice& slice, std::span<const std::byte> from) override;
  [[nodiscard]] const SessionFacts& facts() const override { return parts_.facts; }
  void abandon() noexcept override { failed_ = true; }
  [[nodiscard]] std::optional<Whereabouts> whereabouts() const override;
  void interrupt() noexcept override;

 private:
  [[nodiscard]] std::byte* address(const program::Slice& slice, std::size_t bytes) const;
  void play_section(const PreparedSection& section, std::uint32_t times, Spans spans);

  SessionParts parts_;
  program::RankProgram table_;  ///< buffers and arena sizes; its sections are left empty
  Resolver resolver_;
  std::vector<PreparedSection> sections_;  ///< by program::Section
  std::vector<timeline::Span> spans_;
  Player player_;                                                  ///< of inline play
  std::atomic<bool> interrupted_{false};                           ///< of inline play
  std::atomic<program::Section> section_{program::Section::step};  ///< played last
  std::atomic<std::uint64_t> plays_{0};
  std::atomic<bool> playing_{false};
  std::unique_ptr<StreamThreads> threads_;  ///< absent for inline play
  bool failed_ = false;
};

}  // namespace isoscale::executor::host
