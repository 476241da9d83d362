// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "machine/device_sampler.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <new>
#include <utility>

namespace isoscale::machine {
namespace {

using Clock = std::chrono::steady_clock;

units::Nanoseconds now() {
  return units::Nanoseconds{
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
          .count()};
}

std::vector<Channel> channels_of(const std::vector<Source>& sources) {
  std::vector<Channel> channels;
  for (const Source& source : sources) {
    channels.insert(channels.end(), source.channels.begin(), source.channels.end());
  }
  channels.push_back({.device = "sampler", .quantity = "sample_time", .unit = "s"});
  return channels;
}

}  // namespace

SampleStore::Thinned SampleStore::add(units::Nanoseconds time, std::vector<double> values) {
  samples_.push_back({.time = time, .values = std::move(values)});
  if (samples_.size() <= most_) return Thinned::no;
  // Keeps every second sample, and the newest because the measurement may end before the next.
  std::size_t kept = 0;
  for (std::size_t i = 0; i + 1 < samples_.size(); i += 2) {
    if (kept != i) samples_[kept] = std::move(samples_[i]);
    ++kept;
  }
  samples_[kept++] = std::move(samples_.back());
  samples_.resize(kept);
  return Thinned::yes;
}

std::vector<results::DeviceSeries> SampleStore::series(const std::vector<Channel>& channels) const {
  std::vector<results::DeviceSeries> all;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const auto& [device, quantity, unit] = channels[i];
    results::DeviceSeries series{.device = device, .quantity = quantity, .unit = unit};
    for (const Sample& sample : samples_) {
      if (!std::isfinite(sample.values[i])) continue;
      series.time.push_back(units::to_seconds(sample.time).value());
      series.value.push_back(sample.values[i]);
    }
    if (!series.value.empty()) all.push_back(std::move(series));
  }
  return all;
}

DeviceSampler::DeviceSampler(std::vector<Source> sources, const Sampling& sampling)
    : sources_(std::move(sources)),
      channels_(channels_of(sources_)),
      interval_(sampling.interval),
      store_(sampling.most_samples) {
  if (sources_.empty()) return;
  static_cast<void>(sample());
  // The sampling thread blocks all signals: other threads handle them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::jthread{[this](const std::stop_token& stopped) { run(stopped); }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::vector<results::DeviceSeries> DeviceSampler::stop() {
  if (!thread_.joinable()) return {};
  thread_.request_stop();
  thread_.join();
  static_cast<void>(sample());
  return store_.series(channels_);
}

void DeviceSampler::run(const std::stop_token& stopped) {
  // Questions to a driver may hold up the work that is measured: between samples the thread waits
  // this many times as long as the last one took, but at most longest_pause.
  constexpr int least_pause = 9;
  constexpr std::chrono::seconds longest_pause{1};
  Clock::time_point next = Clock::now();
  Clock::duration took{};
  while (true) {
    next += std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(interval_.value()));
    // Samples that this thread missed because the machine was busy are not taken later.
    next =
        std::max(next, Clock::now() + std::min<Clock::duration>(least_pause * took, longest_pause));
    std::unique_lock lock{mutex_};
    wake_.wait_until(lock, stopped, next, [] { return false; });
    lock.unlock();
    if (stopped.stop_requested()) return;
    const Clock::time_point begin = Clock::now();
    try {
      if (sample() == SampleStore::Thinned::yes) interval_ = interval_ * 2.0;
    } catch (const std::bad_alloc&) {
      // A sample is left out if there is no memory for it.
    }
    took = Clock::now() - begin;
  }
}

SampleStore::Thinned DeviceSampler::sample() {
  std::vector<double> values(channels_.size(), std::numeric_limits<double>::quiet_NaN());
  const units::Nanoseconds time = now();
  std::span<double> rest{values};
  for (const Source& source : sources_) {
    source.read(rest.first(source.channels.size()));
    rest = rest.subspan(source.channels.size());
  }
  rest[0] = units::to_seconds(now() - time).value();
  return store_.add(time, std::move(values));
}

}  // namespace isoscale::machine
