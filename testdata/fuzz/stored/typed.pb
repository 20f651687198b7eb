
*€x€€€„Btyped