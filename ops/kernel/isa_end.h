// Closes the region that "ops/kernel/isa_begin.h" opened.
// Not self-contained: no include guard, by nature.
#if !defined(FLOW_ISA_REGION)
#error "ops/kernel/isa_end.h without ops/kernel/isa_begin.h before it"
#endif
#undef FLOW_ISA_REGION

}  // namespace flow::ops::FLOW_ISA_NAMESPACE

#if FLOW_ISA > 0 && defined(__clang__)
#pragma clang attribute pop
#elif FLOW_ISA > 0
#pragma GCC pop_options
#if FLOW_ISA == 2
#pragma GCC diagnostic pop
#endif
#endif
