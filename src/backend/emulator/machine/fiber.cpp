// Wraps Boost.Context's fiber and announces each switch to AddressSanitizer and ThreadSanitizer.
#include "src/backend/emulator/machine/fiber.h"

#include <atomic>
#include <memory>
#include <utility>

#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {
namespace {

constexpr unsigned orders_nothing = 1;  // ThreadSanitizer's flag: a switch does not synchronize

// The stack allocator for Boost.Context; the Fiber owns the stack.
struct Lent {
  Stack const* stack;
  boost::context::stack_context allocate() const {
    boost::context::stack_context context;
    context.size = Stack::size;
    context.sp = stack->top();
    return context;
  }
  void deallocate(boost::context::stack_context&) const noexcept {}
};

}  // namespace

Fiber::~Fiber() {
  if (inside_) {
    closing_ = true;
    resume();
  }
  if (tsan_inside_ != nullptr) sanitizers::cosmati_tsan_destroy(tsan_inside_);
  for (void* const retired : tsan_retired_) sanitizers::cosmati_tsan_destroy(retired);
}

void Fiber::resume() {
  if (!started_) {
    started_ = true;
    inside_ =
        boost::context::fiber(std::allocator_arg, Lent{&stack_},
                              [this](boost::context::fiber&& outside) { return run(std::move(outside)); });
  }
  if (sanitizers::tells_races()) {
    if (tsan_inside_ == nullptr) tsan_inside_ = sanitizers::cosmati_tsan_create(orders_nothing);
    tsan_outside_ = sanitizers::cosmati_tsan_current();
    sanitizers::cosmati_tsan_switch(tsan_inside_, orders_nothing);
  }
  void* fake_stack = nullptr;
  if (sanitizers::cosmati_asan_start_switch != nullptr)
    sanitizers::cosmati_asan_start_switch(&fake_stack, stack_.bottom(), Stack::size);
  inside_ = std::move(inside_).resume();
  if (sanitizers::cosmati_asan_finish_switch != nullptr)
    sanitizers::cosmati_asan_finish_switch(fake_stack, nullptr, nullptr);
}

bool Fiber::suspend() {
  void* fake_stack = nullptr;
  if (sanitizers::tells_races()) sanitizers::cosmati_tsan_switch(tsan_outside_, orders_nothing);
  if (sanitizers::cosmati_asan_start_switch != nullptr)
    sanitizers::cosmati_asan_start_switch(&fake_stack, host_bottom_, host_size_);
  outside_ = std::move(outside_).resume();
  arrive(fake_stack);
  return !closing_;
}

boost::context::fiber Fiber::run(boost::context::fiber&& outside) {
  outside_ = std::move(outside);
  arrive(nullptr);
  body_(argument_);
  if (sanitizers::tells_races()) sanitizers::cosmati_tsan_switch(tsan_outside_, orders_nothing);
  if (sanitizers::cosmati_asan_start_switch != nullptr)
    sanitizers::cosmati_asan_start_switch(nullptr, host_bottom_, host_size_);
  return std::move(outside_);
}

void Fiber::arrive(void* fake_stack) {
  if (sanitizers::cosmati_asan_finish_switch != nullptr)
    sanitizers::cosmati_asan_finish_switch(fake_stack, &host_bottom_, &host_size_);
}

void Fiber::name(std::string const& name) {
  if (!sanitizers::tells_races()) return;
  // The fiber now runs another emulated thread, whose accesses must not be attributed to the previous one.
  // ThreadSanitizer distinguishes at most 255 threads; beyond that, the identity is reused.
  constexpr int max_threads = 192;
  static std::atomic<int> threads{0};
  if (tsan_inside_ == nullptr || threads.fetch_add(1) < max_threads) {
    if (tsan_inside_ != nullptr) tsan_retired_.push_back(tsan_inside_);
    tsan_inside_ = sanitizers::cosmati_tsan_create(orders_nothing);
  }
  sanitizers::cosmati_tsan_name(tsan_inside_, name.c_str());
}

}  // namespace cosmati::emulator
