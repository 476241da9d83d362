// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "workloads/serve/requests.hpp"
#include "workloads/serve/trials.hpp"

/// Servers that are nothing but queues: events in order of time, with the dispatch and the ledger
/// that runs use.
namespace isoscale::testing_support {

/// Request i arrives at arrivals[i] and takes service[i] seconds. A server takes up to `most` of
/// those that wait at once, in order of arrival; a batch takes as long as its longest.
inline std::vector<workloads::serve::Outcome> queue(workloads::serve::Policy policy,
                                                    std::size_t servers,
                                                    const std::vector<double>& arrivals,
                                                    const std::vector<double>& service,
                                                    std::size_t most = 1) {
  struct Server {
    std::deque<std::size_t> waiting{};
    std::vector<std::size_t> batch{};
    double free_at = std::numeric_limits<double>::infinity();  ///< infinite while idle
    std::uint64_t batches = 0;
  };
  std::vector<workloads::serve::Outcome> outcomes(arrivals.size());
  std::vector<Server> all(servers);
  workloads::serve::Dispatch dispatch{policy, servers};
  workloads::serve::Ledger ledger{arrivals.size()};
  const auto start = [&](Server& server, double now) {
    server.free_at = std::numeric_limits<double>::infinity();
    server.batch.clear();
    double longest = 0;
    while (!server.waiting.empty() && server.batch.size() < most) {
      const std::size_t one = server.waiting.front();
      server.waiting.pop_front();
      server.batch.push_back(one);
      longest = std::max(longest, service[one]);
      outcomes[one].started = now;
      outcomes[one].batch = server.batches;
    }
    if (server.batch.empty()) return;
    ++server.batches;
    server.free_at = now + longest;
  };
  std::size_t next = 0;
  while (!ledger.all_answered()) {
    const auto first = std::ranges::min_element(all, {}, &Server::free_at);
    const bool arrives = next < arrivals.size() && arrivals[next] < first->free_at;
    if (arrives) {
      const std::size_t to = dispatch.assign(service[next]);
      ledger.dispatched(next, to);
      outcomes[next].arrival = arrivals[next];
      outcomes[next].replica = to;
      all[to].waiting.push_back(next);
      if (all[to].batch.empty()) start(all[to], arrivals[next]);
      ++next;
      continue;
    }
    const double now = first->free_at;
    for (const std::size_t one : first->batch) {
      outcomes[one].first = outcomes[one].finished = now;
      ledger.answered(one, outcomes[one].replica);
      dispatch.answered(outcomes[one].replica, service[one]);
    }
    start(*first, now);
  }
  ledger.close();
  return outcomes;
}

}  // namespace isoscale::testing_support
