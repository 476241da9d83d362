// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/dispatch.hpp"

#include <algorithm>
#include <numeric>

#include "program/op.hpp"

namespace isoscale::workloads::stack {
namespace {

constexpr std::uint32_t no_row = program::Rows::no_row;

/// The experts of each row of a rank's activation, `topk` each.
std::vector<std::uint32_t> experts_of_rows(const Routing& routing, const Geometry& g, int ep,
                                           int layer, int microbatch) {
  const auto member = static_cast<std::uint64_t>(g.at.dp * g.ep + ep);
  const std::uint64_t batch =
      member * static_cast<std::uint64_t>(g.microbatches) + static_cast<std::uint64_t>(microbatch);
  const std::uint64_t first = static_cast<std::uint64_t>(g.at.cp) * g.sequence;
  std::vector<std::uint32_t> experts(g.tokens * routing.topk);
  for (std::uint64_t i = 0; i < g.microbatch; ++i) {
    const std::vector<std::uint32_t> of_sample = route(routing, layer, batch * g.microbatch + i);
    for (std::uint64_t position = 0; position < g.sequence; ++position) {
      for (std::uint32_t k = 0; k < routing.topk; ++k) {
        experts[(position * g.microbatch + i) * routing.topk + k] =
            of_sample[(first + position) * routing.topk + k];
      }
    }
  }
  return experts;
}

std::vector<std::uint64_t> rows_by_expert(const std::vector<std::uint32_t>& experts,
                                          std::uint32_t count) {
  std::vector<std::uint64_t> rows(count);
  for (const std::uint32_t expert : experts) {
    if (expert != no_expert) ++rows[expert];
  }
  return rows;
}

void set_sent(const Routing& routing, const std::vector<std::uint32_t>& experts,
              const std::vector<std::uint64_t>& rows, Dispatch& result) {
  std::vector<std::uint64_t> next(rows.size());
  std::exclusive_scan(rows.begin(), rows.end(), next.begin(), std::uint64_t{0});
  result.sent_from.resize(next.back() + rows.back());
  for (std::size_t i = 0; i < experts.size(); ++i) {
    if (experts[i] == no_expert) {
      result.place_of.push_back(no_row);
      continue;
    }
    const std::uint64_t place = next[experts[i]]++;
    result.sent_from[place] = static_cast<std::uint32_t>(i / routing.topk);
    result.place_of.push_back(static_cast<std::uint32_t>(place));
  }
}

/// `from[member][expert of this rank]` rows are received, member by member.
void set_arranged(const std::vector<std::vector<std::uint64_t>>& from, ExpertBatch batch,
                  std::uint64_t room, Dispatch& result) {
  const std::size_t local = from.front().size();
  std::vector<std::vector<std::uint64_t>> begin(from.size(), std::vector<std::uint64_t>(local));
  std::uint64_t row = 0;
  for (std::size_t member = 0; member < from.size(); ++member) {
    for (std::size_t e = 0; e < local; ++e) {
      begin[member][e] = row;
      row += from[member][e];
    }
  }
  result.restored_from.resize(row);
  for (std::size_t e = 0; e < local; ++e) {
    std::uint64_t here = 0;
    for (std::size_t member = 0; member < from.size(); ++member) {
      for (std::uint64_t r = 0; r < from[member][e]; ++r, ++here) {
        const std::uint64_t source = begin[member][e] + r;
        result.restored_from[source] = static_cast<std::uint32_t>(result.arranged_from.size());
        result.arranged_from.push_back(static_cast<std::uint32_t>(source));
      }
    }
    if (batch == ExpertBatch::padded) {
      for (; here < room; ++here) result.arranged_from.push_back(no_row);
    }
    result.rows_of_expert.push_back(here);
  }
}

std::uint64_t sum(std::span<const std::uint64_t> values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

}  // namespace

std::uint64_t Dispatch::received_rows() const { return sum(received); }
std::uint64_t Dispatch::expert_rows() const { return sum(rows_of_expert); }

Dispatch dispatch(const Routing& routing, const Geometry& g, ExpertBatch batch, int layer,
                  int microbatch) {
  Dispatch result;
  const auto members = static_cast<std::size_t>(g.ep);
  const std::size_t local = routing.experts / members;
  const auto mine = static_cast<std::size_t>(g.at.ep);
  std::vector<std::vector<std::uint64_t>> from;
  for (std::size_t member = 0; member < members; ++member) {
    const auto experts = experts_of_rows(routing, g, static_cast<int>(member), layer, microbatch);
    const std::vector<std::uint64_t> rows = rows_by_expert(experts, routing.experts);
    const std::span<const std::uint64_t> all{rows};
    if (member == mine) {
      set_sent(routing, experts, rows, result);
      for (std::size_t to = 0; to < members; ++to) {
        result.sent.push_back(sum(all.subspan(to * local, local)));
      }
    }
    const auto here = all.subspan(mine * local, local);
    from.emplace_back(here.begin(), here.end());
    result.received.push_back(sum(here));
  }
  const std::uint64_t room = routing.capacity * g.microbatch * members;
  set_arranged(from, batch, room, result);
  if (batch == ExpertBatch::exact && (members == 1 || local == 1)) {
    result.arranged_from.clear();  // nothing to move
    result.restored_from.clear();
  }
  return result;
}

}  // namespace isoscale::workloads::stack
