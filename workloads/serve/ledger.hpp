// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// Proof that no request is lost, and none answered twice.
namespace isoscale::workloads::serve {

class Ledger {
 public:
  explicit Ledger(std::size_t requests) : replica_of_(requests), is_answered_(requests) {}

  /// Throws base::Error when the request is unknown or has been dispatched before.
  void dispatched(std::uint64_t request, std::size_t replica);
  /// Throws base::Error when `replica` was not asked it, or it has been answered before.
  void answered(std::uint64_t request, std::size_t replica);

  [[nodiscard]] std::size_t open() const { return replica_of_.size() - answers_; }
  [[nodiscard]] bool all_answered() const { return open() == 0; }
  /// Throws base::Error that counts and names what was lost, unless each request was answered.
  void close() const;

 private:
  [[nodiscard]] std::size_t index_of(std::uint64_t request) const;

  std::vector<std::optional<std::size_t>> replica_of_;
  std::vector<bool> is_answered_;
  std::size_t answers_ = 0;
};

}  // namespace isoscale::workloads::serve
