// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/serve/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace isoscale::workloads::serve {

std::size_t Ledger::index_of(std::uint64_t request) const {
  if (request < replica_of_.size()) return static_cast<std::size_t>(request);
  throw base::Error(fmt::format("request {} where there are {}", request, replica_of_.size()));
}

void Ledger::dispatched(std::uint64_t request, std::size_t replica) {
  std::optional<std::size_t>& taker = replica_of_[index_of(request)];
  if (taker) {
    throw base::Error(fmt::format("request {} goes to replica {}, and was given to replica {}",
                                  request, replica, *taker));
  }
  taker = replica;
}

void Ledger::answered(std::uint64_t request, std::size_t replica) {
  const std::size_t at = index_of(request);
  if (replica_of_[at] != replica) {
    throw base::Error(
        fmt::format("replica {} answers request {}, which it was not asked", replica, request));
  }
  if (is_answered_[at]) {
    throw base::Error(fmt::format("replica {} answers request {} twice", replica, request));
  }
  is_answered_[at] = true;
  ++answers_;
}

void Ledger::close() const {
  if (all_answered()) return;
  const auto first = std::ranges::find(is_answered_, false) - is_answered_.begin();
  throw base::Error(fmt::format("{} of {} requests were not answered, the first is request {}",
                                open(), is_answered_.size(), first));
}

}  // namespace isoscale::workloads::serve
