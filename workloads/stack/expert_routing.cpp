// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <numeric>

#include "program/fill_and_checksum.hpp"
#include "workloads/stack/experts.hpp"

namespace isoscale::workloads::stack {

namespace {

/// A sequence of random numbers. Each key has a sequence of its own.
class Draws {
 public:
  explicit Draws(std::uint64_t key) : word_(program::fill_origin(key)) {}

  std::uint64_t word() { return program::scatter_bits(word_ += 0x9e3779b97f4a7c15ULL); }
  /// Returns a random number, uniform in [0, 1).
  double fraction() { return static_cast<double>(word() >> 11U) * 0x1p-53; }
  /// Returns a random number, uniform in 0 ... count - 1. The relative error of each probability is
  /// at most count / 2^32.
  std::uint64_t below(std::uint64_t count) { return ((word() >> 32U) * count) >> 32U; }

 private:
  std::uint64_t word_;
};

std::uint64_t key_of(const Routing& routing, int layer, std::uint64_t sample) {
  const std::uint64_t of_layer = program::scatter_bits(fill_key(routing.seed, "routing") +
                                                       static_cast<std::uint64_t>(layer) + 1);
  return program::scatter_bits(of_layer + sample + 1);
}

std::vector<std::uint32_t> shuffled(std::uint64_t count, Draws& draws) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
  return order;
}

/// Distributes tokens evenly: the positions of a sample, in random order, get experts round-robin.
std::vector<std::uint32_t> distribute_evenly(const Routing& routing, Draws draws) {
  std::vector<std::uint32_t> experts(routing.sequence * routing.topk);
  const std::vector<std::uint32_t> order = shuffled(routing.sequence, draws);
  const std::uint64_t first = draws.below(routing.experts);
  for (std::uint64_t position = 0; position < routing.sequence; ++position) {
    for (std::uint32_t k = 0; k < routing.topk; ++k) {
      const std::uint64_t turn = first + std::uint64_t{order[position]} * routing.topk + k;
      experts[position * routing.topk + k] = static_cast<std::uint32_t>(turn % routing.experts);
    }
  }
  return experts;
}

/// Draws experts by popularity. The experts of a token are all different.
class Popularity {
 public:
  Popularity(const Routing& routing, int layer) {
    Draws draws{key_of(routing, layer, ~std::uint64_t{0})};
    expert_of_rank_ = shuffled(routing.experts, draws);  // layers have different popular experts
    double sum = 0;
    for (std::uint32_t r = 0; r < routing.experts; ++r) {
      sum += std::pow(r + 1.0, -routing.exponent);
      sums_.push_back(sum);
    }
  }

  void draw(Draws& draws, std::uint32_t* experts, std::uint32_t count) const {
    std::vector<std::uint32_t> ranks;
    while (ranks.size() < count) {
      std::uint32_t rank = any(draws);
      for (int again = 0; again < most_tries && std::ranges::count(ranks, rank) > 0; ++again) {
        rank = any(draws);
      }
      if (std::ranges::count(ranks, rank) > 0) rank = other_than(ranks, draws);
      experts[ranks.size()] = expert_of_rank_[rank];
      ranks.push_back(rank);
    }
  }

 private:
  static constexpr int most_tries = 8;  // repeated draws before other_than() is called

  [[nodiscard]] std::uint32_t any(Draws& draws) const {
    const auto found = std::ranges::upper_bound(sums_, draws.fraction() * sums_.back());
    const auto rank = static_cast<std::uint32_t>(found - sums_.begin());
    return std::min(rank, static_cast<std::uint32_t>(sums_.size() - 1));
  }
  [[nodiscard]] double weight(std::uint32_t rank) const {
    return rank == 0 ? sums_[0] : sums_[rank] - sums_[rank - 1];
  }
  /// Draws a popularity rank that is not in `taken`. The probabilities are the same as if ranks
  /// were drawn repeatedly until one is not in `taken`.
  [[nodiscard]] std::uint32_t other_than(const std::vector<std::uint32_t>& taken,
                                         Draws& draws) const {
    const auto is_free = [&](std::uint32_t rank) { return std::ranges::count(taken, rank) == 0; };
    const auto count = static_cast<std::uint32_t>(sums_.size());
    double left = 0;
    for (std::uint32_t rank = 0; rank < count; ++rank) left += is_free(rank) ? weight(rank) : 0;
    left *= draws.fraction();
    std::uint32_t last = 0;
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      if (!is_free(rank)) continue;
      last = rank;
      left -= weight(rank);
      if (left < 0) break;
    }
    return last;
  }

  std::vector<std::uint32_t> expert_of_rank_;
  std::vector<double> sums_;
};

constexpr std::uint32_t no_row = program::Rows::no_row;

/// Returns the experts of each row of the activation on rank `ep` of the ep group, `topk` for each
/// row.
std::vector<std::uint32_t> experts_of_rows(const Routing& routing, const Geometry& g, int ep,
                                           int layer, int microbatch) {
  const auto member = static_cast<std::uint64_t>(1LL * g.at.dp * g.ep + ep);
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

/// Sets the members of a Dispatch that sort the received rows by expert. `from[member][expert of
/// this rank]` is the number of rows received from a member of the ep group for an expert. With
/// padding, each expert gets `room` rows.
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

Routing routing_of(const Request& request) {
  const TrainingOptions options = options_of(request);
  Routing routing{.experts = static_cast<std::uint32_t>(options.experts),
                  .topk = static_cast<std::uint32_t>(options.topk),
                  .sequence = static_cast<std::uint64_t>(request.model.sequence),
                  .exponent = static_cast<double>(options.skew) / 100,
                  .seed = request.seed};
  if (options.capacity > 0 && routing.has_experts()) {
    const double share = static_cast<double>(routing.sequence) * routing.topk / routing.experts;
    routing.capacity =
        static_cast<std::uint64_t>(std::max(1.0, std::ceil(options.capacity * share - 1e-9)));
  }
  return routing;
}

std::vector<std::uint32_t> route(const Routing& routing, int layer, std::uint64_t sample) {
  Draws draws{key_of(routing, layer, sample)};
  std::vector<std::uint32_t> experts;
  if (routing.exponent == 0) {
    experts = distribute_evenly(routing, draws);
  } else {
    experts.resize(routing.sequence * routing.topk);
    const Popularity popularity{routing, layer};
    for (std::uint64_t position = 0; position < routing.sequence; ++position) {
      popularity.draw(draws, experts.data() + position * routing.topk, routing.topk);
    }
  }
  if (routing.capacity == 0) return experts;
  std::vector<std::uint64_t> taken(routing.experts);
  for (std::uint32_t& expert : experts) {
    if (taken[expert]++ >= routing.capacity) expert = no_expert;
  }
  return experts;
}

RouteStats route_stats(const Request& request) {
  const Routing routing = routing_of(request);
  RouteStats stats;
  if (!routing.has_experts()) return stats;
  const TrainingOptions options = options_of(request);
  const auto samples = static_cast<std::uint64_t>(options.batch);
  const auto ep = static_cast<std::uint64_t>(request.mesh.ep);
  const std::uint64_t microbatch = static_cast<std::uint64_t>(options.microbatch);
  const std::uint64_t of_rank = microbatch * static_cast<std::uint64_t>(options.microbatches);
  const std::uint64_t local = routing.experts / ep;
  std::uint64_t multiplied = 0, most = 0;
  for (int layer = 0; layer < request.model.layers; ++layer) {
    // Samples are numbered [dp][ep][microbatch]. Rows are not sent to other dp coordinates, so the
    // counts begin anew for each coordinate.
    std::vector<std::uint64_t> rows(ep);
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
      if (sample % (of_rank * ep) == 0) std::ranges::fill(rows, 0);
      for (const std::uint32_t expert : route(routing, layer, sample)) {
        ++stats.routed;
        if (expert == no_expert) {
          ++stats.dropped;
        } else {
          most = std::max(most, ++rows[expert / local]);
          ++multiplied;
        }
      }
    }
  }
  const std::uint64_t groups = samples / of_rank * static_cast<std::uint64_t>(request.model.layers);
  if (multiplied > 0) {
    stats.imbalance =
        static_cast<double>(most) * static_cast<double>(groups) / static_cast<double>(multiplied);
  }
  if (options.expert_batch == ExpertBatch::padded) {
    const std::uint64_t room = routing.capacity * routing.experts * samples *
                               static_cast<std::uint64_t>(request.model.layers * request.mesh.cp);
    stats.padded = room - multiplied;
  }
  return stats;
}

std::uint64_t Dispatch::received_rows() const { return sum(received); }

std::uint64_t Dispatch::expert_rows() const { return sum(rows_of_expert); }

Dispatch dispatch(const Routing& routing, const Geometry& g, int layer, int microbatch) {
  Dispatch result;
  const ExpertBatch batch = g.options.expert_batch;
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
    result.arranged_from.clear();  // rows are already in order
    result.restored_from.clear();
  }
  return result;
}

}  // namespace isoscale::workloads::stack
