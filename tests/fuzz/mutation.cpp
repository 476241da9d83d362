// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/fuzz/mutation.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>

#include "base/error.hpp"

namespace isoscale::fuzz {
namespace {

/// Where comparisons and additions turn around.
constexpr std::array<std::uint64_t, 10> edges{
    0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};

using base::Answer;

using Work = std::function<std::string(std::size_t)>;

/// A forked copy of this process, the items that it takes in turn, and the file of its answers.
struct Worker {
  std::vector<std::size_t> items{};
  std::unique_ptr<std::FILE, decltype(&std::fclose)> answers{std::tmpfile(), &std::fclose};
  pid_t process = -1;
};

void start(Worker& worker, const Work& answer) {
  if (!worker.answers) throw base::Error("there is no place for the answers of a process");
  worker.process = fork();
  if (worker.process < 0) throw base::Error("the system gives no process");
  if (worker.process > 0) return;
  for (const std::size_t item : worker.items) {
    const std::string text = answer(item);
    std::fprintf(worker.answers.get(), "%zu\n", text.size());
    std::fwrite(text.data(), 1, text.size(), worker.answers.get());
    std::fflush(worker.answers.get());
  }
  _exit(0);  // skips the exit handlers and buffers that the copy has inherited
}

/// The next answer in a file; none where the process ended before it was written.
std::optional<std::string> next_answer(std::FILE* file) {
  std::size_t length = 0;
  if (std::fscanf(file, "%zu", &length) != 1 || std::fgetc(file) != '\n') return std::nullopt;
  std::string text(length, '\0');
  if (std::fread(text.data(), 1, length, file) != length) return std::nullopt;
  return text;
}

/// Stores the worker's answers and returns the items that it did not start.
std::vector<std::size_t> collect(const Worker& worker, std::vector<Answer>& answers) {
  const std::string ended = base::end_of(worker.process);
  std::rewind(worker.answers.get());
  for (auto item = worker.items.begin(); item != worker.items.end(); ++item) {
    answers[*item].text = next_answer(worker.answers.get());
    if (answers[*item].text) continue;
    answers[*item].ended = ended;
    return {item + 1, worker.items.end()};
  }
  return {};
}

}  // namespace

Mutator::Mutator(std::uint64_t seed, std::uint64_t item)
    : random_(seed * 0x9e3779b97f4a7c15U + item) {
  random_.discard(8);
}

std::size_t Mutator::below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

std::uint64_t Mutator::number() { return random_() >> below(64); }

void Mutator::overwrite(std::string& bytes, std::size_t at, std::size_t size) {
  const std::size_t from = below(bytes.size() - size + 1);
  const std::size_t how = below(4);
  const std::string copied = bytes.substr(from, size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[at + i] = how == 0   ? '\0'
                    : how == 1 ? '\xff'
                    : how == 2 ? static_cast<char>(random_())
                               : copied[i];
  }
}

void Mutator::put_number(std::string& bytes, std::size_t at) {
  const std::uint64_t value = below(2) == 0 ? edges[below(edges.size())] + below(3) - 1 : number();
  const std::size_t width = std::min(std::size_t{1} << below(4), bytes.size() - at);
  std::memcpy(bytes.data() + at, &value, width);
}

void Mutator::damage_once(std::string& bytes) {
  if (bytes.empty()) {
    bytes.push_back(static_cast<char>(random_()));
    return;
  }
  const std::size_t at = below(bytes.size());
  const std::size_t most = std::min<std::size_t>(bytes.size() - at, std::size_t{1} << below(13));
  const std::size_t size = 1 + below(most);
  const std::size_t how = below(10);
  if (how < 3) {
    bytes[at] = static_cast<char>(bytes[at] ^ (1U << below(8)));
  } else if (how == 3) {
    bytes[at] = static_cast<char>(random_());
  } else if (how == 4) {
    overwrite(bytes, at, size);
  } else if (how < 7) {
    put_number(bytes, at);
  } else if (how == 7) {
    bytes.erase(at, size);
  } else if (how == 8) {
    bytes.insert(at, bytes.substr(below(bytes.size()), size));
  } else {
    bytes.resize(at);
  }
}

void Mutator::damage(std::string& bytes) {
  for (std::size_t times = 1 + below(4); times > 0; --times) damage_once(bytes);
}

std::vector<Answer> answer_apart(std::size_t items, std::size_t processes, const Work& answer) {
  std::vector<Answer> answers(items);
  std::vector<std::size_t> left(items);
  std::iota(left.begin(), left.end(), std::size_t{0});
  while (!left.empty()) {  // each round answers or gives up one item of each worker at least
    std::vector<Worker> workers(std::min(processes, left.size()));
    for (std::size_t i = 0; i < left.size(); ++i) {
      workers[i % workers.size()].items.push_back(left[i]);
    }
    for (Worker& worker : workers) start(worker, answer);
    left.clear();
    for (const Worker& worker : workers) {
      const std::vector<std::size_t> of_worker = collect(worker, answers);
      left.insert(left.end(), of_worker.begin(), of_worker.end());
    }
  }
  return answers;
}

}  // namespace isoscale::fuzz
